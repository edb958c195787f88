#!/bin/bash
# The first hour of Lily on a Mac: compiles every kernel, asks the system about every message, runs the back end's
# tests on the real GPU, measures, and writes a summary to attach to an issue.
#
#   lily-metal/mac-check.sh                                    needs a JDK 25 and Maven; about 15 minutes
#   LILY_MODEL_DIR=/path/to/model lily-metal/mac-check.sh      also checks and measures the 35B
#
# LILY_CHECK_MVN is the Maven command (mvn). On other systems the steps that can use the double of Metal do, to prove
# that the check works; the others skip. Works with the bash that comes with macOS (3.2).
set -u
cd "$(dirname "$0")/.." || exit 2
root=$(pwd)
module=$root/lily-metal
out=$module/target/mac-check
summary=$out/summary.txt
maven=${LILY_CHECK_MVN:-mvn}
jvm="--enable-native-access=ALL-UNNAMED --add-modules=jdk.incubator.vector"
model=${LILY_MODEL_DIR:-}
modules="-pl lily-engine,lily-metal"

failed=0
skipped=0
passed=0

say() { # text: to the terminal and the summary
  printf '%s\n' "$1" | sed "s|$root/||g; s|$HOME|~|g" | tee -a "$summary"
}

count() { # a line that begins with its outcome
  say "$1"
  case $1 in
    PASS*) passed=$((passed + 1)) ;;
    FAIL*) failed=$((failed + 1)) ;;
    SKIP*) skipped=$((skipped + 1)) ;;
  esac
}

result() { # PASS, FAIL or SKIP; step; text
  count "$1  $2: $3"
}

title() { # text
  say ""
  say "== $1"
}

log_tail() { # file: its end, for a failure that the summary must explain
  tail -n 25 "$1" | sed 's/^/      /' | while IFS= read -r line; do say "$line"; done
}

finish() {
  title "Result"
  say "$passed passed, $failed failed, $skipped skipped"
  if [ "$is_mac" = yes ]; then
    say "Please attach $summary to an issue, and the logs beside it if a step failed."
  else
    say "This is no Mac: what passed ran on the double of Metal, or needs no GPU. Run it on a Mac for the rest."
  fi
  if [ "$failed" -gt 0 ]; then exit 1; fi
  exit 0
}

if [ "$(uname -s)" = Darwin ]; then is_mac=yes; else is_mac=no; fi
mkdir -p "$out" || exit 2
rm -f "$out"/*.log "$summary"
say "Lily Metal check, $(date -u '+%Y-%m-%d %H:%M') UTC, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"

# ---------------------------------------------------------------------------------------------------------------------
title "The machine"

fact() { # name, command...: a line of what the command prints
  name=$1
  shift
  value=$("$@" 2>/dev/null | tr '\n' ' ' | sed 's/ *$//')
  say "$(printf '      %-22s %s' "$name" "${value:-unknown}")"
}

if [ "$is_mac" = yes ]; then
  fact "macOS" sw_vers -productVersion
  fact "build" sw_vers -buildVersion
  fact "chip" sysctl -n machdep.cpu.brand_string
  fact "model" sysctl -n hw.model
  fact "memory, bytes" sysctl -n hw.memsize
  fact "wired limit, MB" sysctl -n iogpu.wired_limit_mb
  fact "translated (Rosetta)" sysctl -n sysctl.proc_translated
  system_profiler SPDisplaysDataType 2>/dev/null | grep -E 'Chipset|Cores|Metal' |
    while IFS= read -r line; do say "      $(printf '%s' "$line" | sed 's/^ *//')"; done
  pmset -g 2>/dev/null | grep -E 'lowpowermode|powermode' | while IFS= read -r line; do say "      $line"; done
  major=$(sw_vers -productVersion | cut -d. -f1)
  if [ "$major" -ge 15 ]; then
    result PASS machine "macOS $(sw_vers -productVersion)"
  else
    result FAIL machine "macOS $(sw_vers -productVersion); Lily's Metal back end needs 15 or newer"
  fi
else
  fact "system" uname -srm
  result SKIP machine "this is $(uname -s); the facts of a Mac need a Mac"
fi

# ---------------------------------------------------------------------------------------------------------------------
title "Build"

# shellcheck disable=SC2086
if $maven -q -Plaunch $modules process-test-classes >"$out/build.log" 2>&1 && [ -f "$module/target/launch" ]; then
  # shellcheck disable=SC1091
  . "$module/target/launch"
  result PASS build "engine and back end"
else
  result FAIL build "does Maven find a JDK 25? The log is $out/build.log"
  log_tail "$out/build.log"
  finish
fi
"$JAVA" -XshowSettings:properties -version >"$out/java.log" 2>&1
property() { # name
  sed -n "s/^ *$1 = //p" "$out/java.log" | head -n 1
}
say "      Java                   $(property java.version), $(property java.vendor), $(property os.arch)"
if [ "$is_mac" = yes ] && [ "$(property os.arch)" != aarch64 ]; then
  result FAIL java "this JVM runs as $(property os.arch), under Rosetta; install a JDK 25 for aarch64"
fi

double=
flags=
if [ "$is_mac" = no ]; then
  double=--double
  if (cd "$module" && "$JAVA" $jvm -cp "$CLASS_PATH" dev.lily.metal.check.MetalCheck --double launch target/launch-double) \
    >"$out/double.log" 2>&1; then
    # shellcheck disable=SC1091
    . "$module/target/launch-double"
    flags=-Dlily.metal.library=$DOUBLE
    LILY_METAL_DOUBLE_KERNELS=$DOUBLE_KERNELS
    export LILY_METAL_DOUBLE_KERNELS
    result PASS double "what follows runs on the double of Metal and says nothing about a GPU"
  else
    result SKIP double "neither a Mac nor a Linux with clang-19, gcc and gobjc: nothing more can run here"
    finish
  fi
fi

# ---------------------------------------------------------------------------------------------------------------------
check() { # log, steps...: runs MetalCheck; its lines become the summary's
  log=$out/$1.log
  shift
  # shellcheck disable=SC2086
  (cd "$module" && "$JAVA" $jvm -cp "$CLASS_PATH" dev.lily.metal.check.MetalCheck $double "$@") >"$log" 2>&1
  status=$?
  grep -E '^(PASS|FAIL|SKIP)  |^      ' "$log" >"$log.lines"
  while IFS= read -r line; do count "$line"; done <"$log.lines"
  rm -f "$log.lines"
  if [ "$status" -gt 1 ]; then
    result FAIL "$*" "the JVM ended with status $status"
    log_tail "$log"
  fi
}

tests() { # step, test classes, environment...: runs tests with Maven and sums their reports
  step=$1
  classes=$2
  shift 2
  log=$out/$(printf '%s' "$step" | tr -c 'A-Za-z0-9\n' '-').log
  # shellcheck disable=SC2086
  env "$@" $maven -Dstyle.color=never $modules test -Dtest="$classes" -Dsurefire.failIfNoSpecifiedTests=false >"$log" 2>&1
  status=$?
  # One line of totals for each module: the ones that name no class.
  sums=$(sed -n 's/^.*Tests run: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\), Skipped: \([0-9]*\)$/\1 \2 \3 \4/p' \
    "$log" | awk '{ run += $1; bad += $2 + $3; skip += $4 } END { print run + 0, bad + 0, skip + 0 }')
  # shellcheck disable=SC2086
  set -- $sums
  grep -E '^35B golden|^lily-nano|^Decode beside|goldens? on metal' "$log" |
    while IFS= read -r line; do say "      $line"; done
  if [ "$status" -ne 0 ] || [ "$2" -gt 0 ]; then
    result FAIL "$step" "$2 of $1 tests failed; the log is $log"
    grep -E '^\[ERROR\]' "$log" | head -n 25 >"$log.errors"
    log_tail "$log.errors"
    rm -f "$log.errors"
  elif [ "$1" -eq 0 ] || [ "$1" -eq "$3" ]; then
    result SKIP "$step" "none of $1 tests could run; the log is $log"
  else
    result PASS "$step" "$(($1 - $3)) tests, $3 skipped"
  fi
}

if [ "$is_mac" = yes ]; then chosen=device; else chosen=double; fi

title "The device"
check device device selectors
if [ "$is_mac" = yes ] && grep -q '^FAIL  device' "$out/device.log"; then
  say "      Without a GPU nothing more can run. Hosted runners and virtual machines have none that Lily can use."
  finish
fi

title "Compilation"
check compilation sources kernels

title "Tests on the device"
tests contract 'MetalBackendContractTest*' LILY_METAL_TESTS=$chosen
tests "model" 'MetalPassTest,DecodePathTest*,MetalEngineTest*,LilyNanoTest*' LILY_METAL_TESTS=$chosen

if [ "$is_mac" = yes ]; then
  if [ "$major" -ge 26 ]; then
    tests "contract with tensor operations" 'TensorContractTest*' LILY_METAL_TESTS=device
  else
    result SKIP "contract with tensor operations" "they need macOS 26"
  fi
fi

title "Under Metal's validation"
if [ "$is_mac" = yes ]; then
  MTL_DEBUG_LAYER=1
  MTL_SHADER_VALIDATION=1
  export MTL_DEBUG_LAYER MTL_SHADER_VALIDATION
  check validation memory
  if ! grep -qi 'validation enabled' "$out/validation.log"; then
    say "      Metal did not say that its validation is on; what follows may have run without it."
  fi
  tests "contract under validation" 'MetalBackendContractTest*,MetalEngineTest*' LILY_METAL_TESTS=$chosen
  unset MTL_DEBUG_LAYER MTL_SHADER_VALIDATION
else
  result SKIP validation "MTL_DEBUG_LAYER and MTL_SHADER_VALIDATION need a Mac; the double checks by itself"
fi

title "Time and memory"
check dispatches dispatches
check memory memory

bench() { # step, model, options...
  step=$1
  directory=$2
  shift 2
  log=$out/bench.log
  # shellcheck disable=SC2086
  if "$JAVA" $jvm $flags -cp "$CLASS_PATH" dev.lily.engine.bench.LilyBench --model "$directory" --backend metal \
    --json "$out/bench.json" "$@" >"$log" 2>&1; then
    grep -E '^ |^[^ ]+ on metal' "$log" | while IFS= read -r line; do say "      $line"; done
    result PASS "$step" "LilyBench $*"
  else
    result FAIL "$step" "the log is $log"
    log_tail "$log"
  fi
}

nano=$root/sample-app/models/lily-nano-4bit
random=$module/target/random-35b-4
if [ "$is_mac" = no ]; then
  bench bench "$nano" --contexts 16 --chunk 16 --decode-steps 2
elif [ -n "$model" ]; then
  bench "bench of the 35B" "$model" --contexts 128,2048,8192 --chunk 2048
else
  if [ ! -f "$random/tokenizer.json" ] && [ "$(df -k "$module" | awk 'NR == 2 { print $4 }')" -gt 6000000 ]; then
    # shellcheck disable=SC2086
    "$JAVA" $jvm -cp "$CLASS_PATH" dev.lily.engine.bench.RandomCheckpoint 35b 4 "$random" >"$out/random.log" 2>&1
  fi
  if [ -f "$random/tokenizer.json" ]; then
    bench "bench of four layers of the 35B's shapes, random weights" "$random" --contexts 128,2048,8192 --chunk 2048
  else
    bench "bench of lily-nano" "$nano" --contexts 128,512,1024
  fi
fi

title "The 35B"
if [ -z "$model" ]; then
  result SKIP "35B goldens" "LILY_MODEL_DIR is not set"
elif [ "$is_mac" = no ]; then
  result SKIP "35B goldens" "the double would take hours; this needs a Mac"
else
  tests "35B goldens" 'dev.lily.metal.FullModelGoldenTest' LILY_METAL_TESTS=device "LILY_MODEL_DIR=$model"
fi

# Last: a process that the watchdog has stopped may not use the GPU again, and the display may stutter.
title "The watchdog"
check watchdog watchdog

finish
