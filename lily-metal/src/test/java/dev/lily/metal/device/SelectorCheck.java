package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.lily.metal.msl.MslToolchain;
import dev.lily.metal.objc.AutoreleasePool;
import dev.lily.metal.objc.CFunction;
import dev.lily.metal.objc.FoundationSelectors;
import dev.lily.metal.objc.MessageSend;
import dev.lily.metal.objc.NSString;
import dev.lily.metal.objc.ObjcObject;
import dev.lily.metal.objc.ObjcRuntime;
import dev.lily.metal.objc.Selector;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Asks the objects of the running system whether they have the methods that the binding sends, and
 * whether the compiler saw the arguments that the binding passes.
 */
// The runtime's own functions, as its header declares them.
@SuppressWarnings("restricted")
public final class SelectorCheck {
  /** Absent from the runtime below the double, where the class is an object's first word. */
  private static final CFunction OBJECT_CLASS =
      CFunction.in(ObjcRuntime.library(), "object_getClass");

  private static final CFunction INSTANCE_METHOD =
      CFunction.in(ObjcRuntime.library(), "class_getInstanceMethod");
  private static final CFunction CLASS_METHOD =
      CFunction.in(ObjcRuntime.library(), "class_getClassMethod");
  private static final CFunction TYPES =
      CFunction.in(ObjcRuntime.library(), "method_getTypeEncoding");
  private static final MethodHandle POINTER_OF_TWO =
      Linker.nativeLinker().downcallHandle(FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG));

  /** An object, or a class for methods of the class. */
  private final Map<String, Long> receivers = new HashMap<>();

  private final List<String> problems = new ArrayList<>();
  private int understood;
  private int compared;

  private SelectorCheck() {}

  /**
   * What was found.
   *
   * @param understood messages whose receiver has the method
   * @param compared messages whose arguments could be compared
   * @param problems one sentence each
   */
  public record Result(int understood, int compared, List<String> problems) {}

  /** Asks about the whole table. */
  public static Result run() {
    SelectorCheck check = new SelectorCheck();
    try (AutoreleasePool _ = AutoreleasePool.open();
        MetalDevice device = MetalDevice.open();
        NSString text = NSString.of("text");
        ObjcObject options = ObjcObject.newInstance("MTLCompileOptions");
        ObjcObject descriptor = ObjcObject.newInstance("MTLResidencySetDescriptor")) {
      check.foundation(text);
      check.receivers.put("MTLCompileOptions", options.id());
      check.receivers.put("MTLResidencySetDescriptor", descriptor.id());
      check.metal(device);
    }
    return new Result(check.understood, check.compared, List.copyOf(check.problems));
  }

  private static Stream<Selector> table() {
    return Stream.concat(FoundationSelectors.all().stream(), MetalSelectors.all().stream());
  }

  private static Selector selector(String receiver, String name) {
    return table()
        .filter(s -> s.receiver().equals(receiver) && s.name().equals(name))
        .findFirst()
        .orElseThrow();
  }

  private void foundation(NSString text) {
    long processInfo = ObjcRuntime.requireClass("NSProcessInfo");
    receivers.put("+NSObject", ObjcRuntime.requireClass("NSObject"));
    receivers.put("NSObject", text.id());
    receivers.put("NSString", text.id());
    receivers.put("+NSProcessInfo", processInfo);
    receivers.put(
        "NSProcessInfo",
        MessageSend.sendForLong(processInfo, selector("+NSProcessInfo", "processInfo")));
  }

  private void metal(MetalDevice device) {
    long all = MetalFramework.COPY_ALL_DEVICES.callForLong();
    long gpu =
        all == 0
            ? MetalFramework.CREATE_SYSTEM_DEFAULT_DEVICE.callForLong()
            : MessageSend.sendForLong(all, selector("NSArray", "objectAtIndex:"), 0);
    try {
      if (all != 0) {
        receivers.put("NSArray", all);
      }
      receivers.put("MTLDevice", gpu);
      receivers.put("MTLArchitecture", MessageSend.sendForLong(gpu, MetalSelectors.ARCHITECTURE));
      MetalLibrary library =
          device.compile(
              "elementwise.metal",
              MslToolchain.source("elementwise"),
              LanguageVersion.MSL_3_1,
              MathMode.SAFE);
      receivers.put("MTLLibrary", library.id());
      receivers.put("MTLComputePipelineState", library.pipeline("clear_words").id());
      MetalBuffer buffer = device.buffer(64, StorageMode.SHARED);
      receivers.put("MTLBuffer", buffer.id());
      receivers.put("MTLResource", buffer.id());
      CommandQueue queue = device.queue(1);
      receivers.put("MTLCommandQueue", queue.id());
      device.residencySet(1).ifPresent(set -> receivers.put("MTLResidencySet", set.id()));
      commands(queue.id());
    } finally {
      ObjcObject.release(all == 0 ? gpu : all);
    }
  }

  private void commands(long queue) {
    long buffer = MessageSend.sendForLong(queue, MetalSelectors.COMMAND_BUFFER_UNRETAINED);
    receivers.put("MTLCommandBuffer", buffer);
    long encoder =
        MessageSend.sendForLong(
            buffer, MetalSelectors.COMPUTE_COMMAND_ENCODER, DispatchType.SERIAL.value());
    receivers.put("MTLComputeCommandEncoder", encoder);
    try {
      table().forEach(this::ask);
    } finally {
      MessageSend.send(encoder, MetalSelectors.END_ENCODING);
    }
  }

  private void ask(Selector selector) {
    String name = selector.receiver();
    Long receiver = receivers.get(name);
    boolean responds =
        receiver != null && receiver != 0 && ObjcObject.respondsTo(receiver, selector);
    long method = method(selector, receiver == null ? 0 : receiver);
    if (method == 0 && !responds) {
      problems.add(
          receiver == null
              ? "there is no " + name + " to ask for " + selector.name()
              : name + " does not understand " + selector.name());
      return;
    }
    understood++;
    if (method != 0) {
      compare(selector, method);
    }
  }

  /** Of the receiver's own class, which may be hidden, or of the class that the table names. */
  private static long method(Selector selector, long receiver) {
    if (selector.receiver().startsWith("+")) {
      return method(CLASS_METHOD, receiver, selector);
    }
    long method = method(INSTANCE_METHOD, classOf(receiver), selector);
    return method != 0
        ? method
        : method(INSTANCE_METHOD, ObjcRuntime.findClass(selector.receiver()), selector);
  }

  private static long classOf(long object) {
    if (object == 0) {
      return 0;
    }
    return OBJECT_CLASS.isPresent()
        ? OBJECT_CLASS.callForLong(object)
        : MemorySegment.ofAddress(object).reinterpret(Long.BYTES).get(JAVA_LONG, 0);
  }

  private static long method(CFunction of, long type, Selector selector) {
    if (type == 0) {
      return 0;
    }
    try {
      return (long) POINTER_OF_TWO.invokeExact(of.address(), type, selector.address());
    } catch (Throwable t) {
      throw new AssertionError(t);
    }
  }

  private void compare(Selector selector, long method) {
    long types = TYPES.callForLong(method);
    String actual = MemorySegment.ofAddress(types).reinterpret(Long.MAX_VALUE).getString(0);
    Optional<String> seen = TypeShape.ofMethod(actual);
    if (seen.isEmpty()) {
      return;
    }
    compared++;
    String expected = TypeShape.of(selector.types()).orElseThrow();
    if (!seen.get().equals(expected)) {
      problems.add(
          "%s has types %s; the binding passes %s".formatted(selector, actual, selector.types()));
    }
  }
}
