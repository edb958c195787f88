#!/bin/bash
# The Metal kernels on an NVIDIA GPU: built from the same sources, checked against double precision, and looked over by
# compute-sanitizer.
#
#   nvidia-proof.sh build    makes target/nvidia-proof, which needs nothing but a driver on the other machine
#                            (here: clang 19, gcc with gobjc, Maven, a JDK 25 as LILY_JDK or JAVA_HOME; ptxas if there)
#   nvidia-proof.sh run      in that folder, on the machine with the GPU (compute-sanitizer on the PATH)
#
# run takes the steps named after it, or all: tests contract nano shapes memcheck racecheck synccheck timing.
# LILY_SEED repeats the random data of a run; LILY_NANO names the folder of lily-nano-4bit for the step nano.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
status=0

build() {
  jdk=${LILY_JDK:-${JAVA_HOME:-}}
  if ! grep -q 'JAVA_VERSION="25' "$jdk/release" 2>/dev/null; then
    echo "A JDK 25 is due in LILY_JDK or JAVA_HOME; it is '$jdk'" >&2
    exit 2
  fi
  out=$here/target/nvidia-proof
  rm -rf "$out"
  mkdir -p "$out/lib" "$out/native"
  (cd "$here/.." && mvn ${MAVEN_FLAGS:-} -q test-compile dependency:copy-dependencies -pl lily-metal -am \
    -DincludeScope=test -DexcludeGroupIds=dev.lily,com.tngtech.archunit,net.jqwik,net.bytebuddy,com.knuddels,ch.qos.logback "-DoutputDirectory=$out/lib")
  for module in lily-engine lily-metal; do
    for classes in classes test-classes; do
      "$jdk/bin/jar" --create --file "$out/lib/$module-$classes.jar" -C "$here/../$module/target/$classes" .
    done
  done
  (cd "$here" && "$jdk/bin/java" --enable-native-access=ALL-UNNAMED -cp "$out/lib/*" \
    dev.lily.metal.device.NvidiaLibraries "$out/native")
  cp -L "$(gcc -print-file-name=libobjc.so)" "$out/native/libobjc.so.4"
  if command -v ptxas >/dev/null; then
    ptxas -arch=sm_90 -lineinfo -o "$out/native/lily-kernels.cubin" "$out/native/lily-kernels.ptx"
  fi
  (cd "$here" && "$jdk/bin/java" --add-modules=jdk.incubator.vector --enable-native-access=ALL-UNNAMED -cp "$out/lib/*" \
    dev.lily.metal.msl.JUnitRun dev.lily.metal.ReplayTraceTest)
  mkdir -p "$out/replay"
  cp "$here"/target/replay/*.trace "$out/replay/"
  g++ -std=c++17 -O2 -static-libstdc++ -static-libgcc -o "$out/replay/replay" "$here/src/test/native/replay/replay.cpp" -ldl
  "$jdk/bin/jlink" --add-modules java.base,java.logging,java.instrument,java.management,java.xml,jdk.management,jdk.incubator.vector,jdk.unsupported \
    --strip-debug --no-header-files --no-man-pages --output "$out/java"
  cp "$here/nvidia-proof.sh" "$out/"
  du -sh "$out"
}

# Runs a class of the tests on the GPU; words before it go before the command.
on_gpu() {
  before=$1
  shift
  LD_LIBRARY_PATH="$here/native${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" $before "$here/java/bin/java" \
    --add-modules=jdk.incubator.vector --enable-native-access=ALL-UNNAMED \
    "-Dlily.kernels.library=$here/native/liblily-gpu.so" "-Dlily.native.dir=$here/native" \
    "-Dlily.nano.dir=${LILY_NANO:-}" -cp "$here/lib/*" "$@" 2>&1 | sed '/incubator module/d'
}

kernel_tests=(ElementwiseKernel NormKernel MatmulKernel DeltaRuleKernel AttentionKernel ExpertsKernel SamplingKernel)
kernel_tests=("${kernel_tests[@]/%/CpuRunTest}")
kernel_tests=("${kernel_tests[@]/#/dev.lily.metal.msl.}")

# Every kernel, in small and odd shapes.
tests() {
  on_gpu "" dev.lily.metal.msl.JUnitRun "${kernel_tests[@]}"
}

# The back end's contract through the double of Metal.
contract() {
  on_gpu "" dev.lily.metal.msl.JUnitRun dev.lily.metal.MetalBackendContractTest dev.lily.metal.TensorContractTest
}

nano() {
  if [ -z "${LILY_NANO:-}" ]; then
    echo "skipped: LILY_NANO is not set"
    return
  fi
  on_gpu "" dev.lily.metal.msl.JUnitRun dev.lily.metal.MetalEngineTest
}

# The kernels of the 35B at its shapes.
shapes() {
  on_gpu "" dev.lily.metal.msl.KernelProof real
}

sanitize() {
  on_gpu "compute-sanitizer --tool $1 --error-exitcode 9" dev.lily.metal.msl.KernelProof sanitizer &&
    on_gpu "compute-sanitizer --tool $1 --error-exitcode 9" dev.lily.metal.msl.JUnitRun "${kernel_tests[@]}"
}

# With each buffer an allocation of its own size, so that the tool sees every access past its end.
memcheck() {
  LILY_GPU_EXACT=1 sanitize memcheck
}

racecheck() {
  sanitize racecheck
}

synccheck() {
  sanitize synccheck
}

# Microseconds, GB/s and TFLOP/s of every kernel that a decode token and prefills of the 35B dispatch, and of the passes in
# their order; also as timing/replay.md and .json.
timing() {
  module=$here/native/lily-kernels.cubin
  if [ ! -e "$module" ]; then module=$here/native/lily-kernels.ptx; fi
  mkdir -p "$here/timing"
  "$here/replay/replay" "$here/timing" "$module" -- "$here"/replay/*.trace
}

step() {
  echo "== $1"
  begin=$(date +%s)
  if "$1"; then
    echo "== $1: passed, $(($(date +%s) - begin)) s"
  else
    echo "== $1: FAILED, $(($(date +%s) - begin)) s"
    status=1
  fi
}

case "${1:-}" in
  build)
    build
    ;;
  run)
    shift
    for name in "${@:-tests contract nano shapes memcheck racecheck synccheck timing}"; do
      for single in $name; do
        step "$single"
      done
    done
    exit $status
    ;;
  *)
    sed -n '2,12p' "$0"
    exit 2
    ;;
esac
