package dev.lily.metal.device;

import dev.lily.metal.objc.MessageSend;

/** Command buffers of one queue start in the order of their commits. */
public final class CommandQueue extends DeviceObject {
  private final MetalDevice device;
  private final int maxCommandBuffers;
  private int numOpen;

  CommandQueue(DeviceObjects owner, long owned, MetalDevice device, int maxCommandBuffers) {
    super(owner, owned, "command queue");
    this.device = device;
    this.maxCommandBuffers = maxCommandBuffers;
  }

  /** A slot for command buffers, to be used again and again. */
  public CommandBuffer commandBuffer() {
    CommandBuffer buffer = new CommandBuffer(this, device);
    owner().add(buffer);
    return buffer;
  }

  /** Keeps the set's buffers resident for this queue's work. */
  public void add(ResidencySet set) {
    MessageSend.send(id(), MetalSelectors.ADD_RESIDENCY_SET, set.id());
  }

  public void remove(ResidencySet set) {
    MessageSend.send(id(), MetalSelectors.REMOVE_RESIDENCY_SET, set.id());
  }

  /** A new native command buffer, autoreleased. Metal would block on one too many for ever. */
  long begin() {
    if (numOpen == maxCommandBuffers) {
      throw new IllegalStateException(
          "Beginning a command buffer: "
              + numOpen
              + " are not completed, the most this queue takes; await one first");
    }
    long buffer = MessageSend.sendForLong(id(), MetalSelectors.COMMAND_BUFFER_UNRETAINED);
    if (buffer == 0) {
      throw new DeviceUnavailableException("Beginning a command buffer: the queue gave none");
    }
    numOpen++;
    return buffer;
  }

  void ended() {
    numOpen--;
  }
}
