package dev.lily.engine.generation;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.disk.DiskWorker;
import dev.lily.engine.generation.disk.FileStore;
import java.io.IOException;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/**
 * A process of its own that writes entries of {@link DiskTierTest}'s prompts and stops in the
 * middle of the third one's file, saying so, to be killed there.
 */
final class KilledWriter {
  static final String WRITING = "writing";

  private KilledWriter() {}

  /** Stops for ever when the third file would get its name: all of it but that is there. */
  private static final class Stopping implements FileStore {
    private int files;

    @Override
    public void force(SeekableByteChannel channel) throws IOException {
      FileStore.super.force(channel);
      if (++files == 3) {
        System.out.println(WRITING);
        try {
          new CountDownLatch(1).await();
        } catch (InterruptedException e) {
          throw new IOException(e);
        }
      }
    }
  }

  /**
   * Runs until it is killed.
   *
   * @param arguments the directory
   */
  public static void main(String[] arguments) throws InterruptedException {
    DiskCacheOptions disk =
        new DiskCacheOptions(
            Path.of(arguments[0]), 1L << 40, "a model", new Stopping(), DiskWorker::thread);
    PrefixCacheOptions cache =
        new PrefixCacheOptions(100_000, 100, DiskTierTest.PAGE, 0, false, disk);
    Scheduler scheduler =
        Scheduler.start(
            DiskTierTest.model(4).build(),
            Nano.TOKENIZER,
            new int[] {Nano.END},
            new SchedulerOptions(4, 64, 32, 400, Duration.ofDays(1), cache));
    for (int seed = 1; seed <= 3; seed++) {
      int[] prompt = DiskTierTest.prompt(seed);
      GenerationRequest request =
          GenerationRequest.builder(Conversation.of(new Message.User("x"))).maxTokens(4).build();
      scheduler
          .submit(request, new EncodedPrompt(prompt, false), ManualScheduler.GREEDY, new Recorder())
          .await();
    }
    new CountDownLatch(1).await();
  }
}
