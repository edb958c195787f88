#!/usr/bin/env bash
# Runs a tool of dev.lily.engine.bench on the JDK 25 that Maven finds.
#   lily-engine/bench.sh LilyBench --model sample-app/models/lily-nano-4bit
#   lily-engine/bench.sh RandomCheckpoint 35b 4 /tmp/random-35b
set -euo pipefail
here=$(pwd)
cd "$(dirname "$0")/.."
tool=$1
shift
arguments=
for argument in "$@"; do
  # A path is meant from where the caller stands, but the tool runs in the module.
  if [ -e "$here/$argument" ]; then argument=$here/$argument; fi
  arguments="$arguments \"$argument\""
done
exec mvn -q -pl lily-engine compile org.codehaus.mojo:exec-maven-plugin:3.5.1:exec \
  -Dexec.executable=java -Dexec.classpathScope=runtime \
  -Dexec.args="--add-modules=jdk.incubator.vector ${LILY_BENCH_JVM:-} -cp %classpath dev.lily.engine.bench.$tool$arguments"
