package dev.lily.spring.autoconfigure;

import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.LastHttpContent;
import java.time.Duration;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import reactor.netty.NettyPipeline;

/**
 * Closes connections whose request line and headers take too long: from the connection's start, or
 * from the first byte of a later request. Otherwise a client that sends a byte now and then holds a
 * connection for ever. How long a connection may idle between requests is the server's setting.
 */
final class RequestHeadTimeout
    implements WebServerFactoryCustomizer<NettyReactiveWebServerFactory> {
  private final Duration limit;

  RequestHeadTimeout(Duration limit) {
    this.limit = limit;
  }

  @Override
  public void customize(NettyReactiveWebServerFactory factory) {
    factory.addServerCustomizers(
        server -> server.doOnChannelInit((_, channel, _) -> watch(channel.pipeline())));
  }

  private void watch(ChannelPipeline pipeline) {
    if (pipeline.get(NettyPipeline.HttpCodec) != null) {
      Watch watch = new Watch(limit);
      pipeline.addBefore(NettyPipeline.HttpCodec, "lily.requestBytes", watch);
      pipeline.addAfter(NettyPipeline.HttpCodec, "lily.requestHead", watch.afterCodec());
    }
  }

  /** Sees the bytes, before they are decoded. On the connection's event loop. */
  private static final class Watch extends ChannelInboundHandlerAdapter {
    private final Duration limit;
    private @Nullable ScheduledFuture<?> alarm;
    private boolean betweenRequests = true;

    Watch(Duration limit) {
      this.limit = limit;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
      start(context);
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object bytes) {
      if (betweenRequests && alarm == null) {
        start(context);
      }
      context.fireChannelRead(bytes);
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
      stop();
      context.fireChannelInactive();
    }

    private void start(ChannelHandlerContext context) {
      alarm =
          context
              .executor()
              .schedule((Runnable) () -> close(context), limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    private static void close(ChannelHandlerContext context) {
      var _ = context.close();
    }

    private void stop() {
      if (alarm != null) {
        alarm.cancel(false);
        alarm = null;
      }
    }

    /** Sees the decoded head and the end of the request. */
    ChannelDuplexHandler afterCodec() {
      return new ChannelDuplexHandler() {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
          if (message instanceof HttpRequest) {
            betweenRequests = false;
            stop();
          }
          if (message instanceof LastHttpContent) {
            betweenRequests = true;
          }
          context.fireChannelRead(message);
        }
      };
    }
  }
}
