package dev.lily.metal.device;

import dev.lily.metal.objc.ObjcObject;

/**
 * An object that belongs to a device. Closing ends its use at once; it is released when the command
 * buffers begun until then have completed, because those keep no references of their own.
 */
abstract sealed class DeviceObject extends ObjcObject
    permits CommandQueue, ComputePipeline, MetalBuffer, MetalLibrary, ResidencySet {
  private final DeviceObjects owner;
  private final String description;

  DeviceObject(DeviceObjects owner, long owned, String description) {
    super(owned);
    this.owner = owner;
    this.description = description;
    owner.add(this);
  }

  @Override
  public void close() {
    owner.remove(this);
    long owned = detach();
    if (owned != 0) {
      owner.releaseWhenIdle(owned);
    }
  }

  final DeviceObjects owner() {
    return owner;
  }

  @Override
  public final String toString() {
    return description;
  }
}
