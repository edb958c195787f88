package dev.lily.engine.checkpoint;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** A byte range of a file as a stream; ends earlier where the file does. Leaves the file open. */
final class ChannelRegion extends InputStream {
  private final FileChannel channel;
  private final long end;
  private long position;

  ChannelRegion(FileChannel channel, long begin, long end) {
    this.channel = channel;
    this.position = begin;
    this.end = end;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public int read(byte[] bytes, int offset, int length) throws IOException {
    if (length == 0) {
      return 0;
    }
    if (position >= end) {
      return -1;
    }
    int wanted = (int) Math.min(length, end - position);
    int count = channel.read(ByteBuffer.wrap(bytes, offset, wanted), position);
    position += Math.max(count, 0);
    return count;
  }
}
