#!/usr/bin/env bash
# Compares Lily's CPU back end with llama.cpp and Jlama on this machine, two threads each.
#
#   lily-engine/src/bench/compare-peers.sh [mid|full] [ROUNDS=3]
#
# mid    1 GB: a quarter of an hour. full: the shapes of Qwen3.6-35B-A3B, 40 GB of disk, 20 GB of memory.
#
# Peers come by name from the npm registry (llama.cpp's prebuilt libraries in node-llama-cpp) and from Maven
# (Jlama); they and the models go under $PEERS (default: lily-peers in the temporary directory), nothing into the
# project. Lily and llama.cpp compute one random model, at 4.5 bits a weight in both formats; Jlama, which does not
# know the architecture, a dense one that reads about as many bytes a token.
#
# Engines take turns, ROUNDS times; the table has medians. LILY_ROWS adds rows of Lily with other options, as in
#   LILY_ROWS='scalar=--kernels scalar'
# Needs bash, node's npm, python3 with numpy, g++, git, Maven.
set -euo pipefail
size=${1:-mid}
rounds=${2:-3}
case $size in
  mid) prefills=128,512,2048 decodes=128,1024,4096 steps=32 ;;
  full) prefills=128,512 decodes=128,1024,4096 steps=16 ;;
  *) echo "compare-peers.sh mid|full, not '$size'" >&2; exit 2 ;;
esac
threads=2
node_llama_cpp=3.22.1
jlama=0.8.4
here=$(cd "$(dirname "$0")" && pwd)
bench=$here/../../bench.sh
peers=${PEERS:-${TMPDIR:-/tmp}/lily-peers}
mkdir -p "$peers/node" "$peers/jlama" "$peers/models"

tool() { # NAME ARGUMENT...
  # Maven writes colour codes around what a tool prints.
  "$bench" "$@" | sed 's/\x1b\[[0-9;]*m//g'
}

install_llama_cpp() {
  libraries=$peers/node/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64
  if [ ! -d "$libraries" ]; then
    (cd "$peers/node" && npm init -y >/dev/null &&
      npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
        "node-llama-cpp@$node_llama_cpp" "@node-llama-cpp/linux-x64@$node_llama_cpp" >&2)
  fi
  # The package carries the sources of its libraries as a git bundle; the driver needs their headers.
  headers=$peers/node/llama.cpp
  if [ ! -d "$headers" ]; then
    git clone -q "$peers/node/node_modules/node-llama-cpp/llama/gitRelease.bundle" "$headers"
  fi
  names=()
  for library in "$libraries"/libllama.v*.so "$libraries"/libggml.v*.so "$libraries/libggml-base.so"; do
    names+=("-l:$(basename "$library")")
  done
  g++ -O2 -std=c++17 -I"$headers/include" -I"$headers/ggml/include" "$here/llama_bench.cpp" -o "$peers/llama_bench" \
    -L"$libraries" "${names[@]}" -Wl,-rpath,"$libraries"
}

install_jlama() {
  cat >"$peers/jlama/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>jlama</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>com.github.tjake</groupId><artifactId>jlama-core</artifactId><version>$jlama</version></dependency>
    <dependency><groupId>com.github.tjake</groupId><artifactId>jlama-native</artifactId><version>$jlama</version>
      <classifier>linux-x86_64</classifier></dependency>
  </dependencies>
</project>
POM
  mvn -q -B -f "$peers/jlama/pom.xml" dependency:build-classpath -Dmdep.outputFile="$peers/jlama/classpath" >&2
  jlama_path=$peers/jlama:$(cat "$peers/jlama/classpath")
  java=$(tool JavaHome)/bin/java
  "${java}c" -nowarn -cp "$jlama_path" -d "$peers/jlama" "$here/JlamaBench.java"
}

model() { # NAME COMMAND...
  local directory=$peers/models/$1
  shift
  if [ ! -e "$directory/active_bytes" ]; then python3 "$@" "$directory" >&2; fi
}

# If memory runs out, a benchmark goes first.
{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null || true

install_llama_cpp
model tiny "$here/random_model.py" --gguf-f32 tiny
model "$size" "$here/random_model.py" "$size"
tokens=5,9,100,7
theirs=$(GREEDY=$tokens "$peers/llama_bench" "$libraries" "$peers/models/tiny/model.gguf" "$threads" 8 8 1 | sed 's/:[^ ]*//g; s/ *$//')
ours=$(tool GreedyTokens "$peers/models/tiny/mlx" "$tokens" 16)
if [ "$theirs" != "$ours" ]; then
  printf 'The engines do not compute one model: on tiny in fp32 llama.cpp gives\n%s\nLily\n%s\n' "$theirs" "$ours" >&2
  exit 1
fi
echo "On the tiny model in fp32 both engines give the same 16 tokens: $ours" >&2

results=$peers/$size.results
: >"$results"
record() { # ENGINE JSON
  printf '%s\t%s\n' "$1" "$(tr '\n' ' ' <<<"$2")" | tee -a "$results" >&2
}
lily() { # ENGINE OPTION...
  local engine=$1
  shift
  "$bench" LilyBench --model "$peers/models/$size/mlx" --threads "$threads" --decode-steps "$steps" \
    --contexts "$(tr ',' '\n' <<<"$prefills,$decodes" | sort -nu | paste -sd,)" --json "$peers/lily.json" "$@" >&2
  record "$engine" "$(cat "$peers/lily.json")"
}
llama() {
  # Its flash attention is slower on CPUs in long contexts, so both are tried and the better one counts.
  local model=$peers/models/$size/model.gguf
  record llama.cpp "$("$peers/llama_bench" "$libraries" "$model" "$threads" "$prefills" "$decodes" "$steps" -1)"
  record llama.cpp-plain "$("$peers/llama_bench" "$libraries" "$model" "$threads" 128 "$decodes" "$steps" 0)"
}

if [ "$size" = mid ]; then
  install_jlama
  model dense "$here/dense_model.py"
fi
for ((round = 1; round <= rounds; round++)); do
  echo "Round $round of $rounds" >&2
  record machine "$(tool MachineBench "$threads" |
    awk 'END { printf "{\"readGigabytesPerSecond\": %s, \"fmaGigaflopsPerSecond\": %s}", $2, $4 }')"
  lily fp32
  while IFS='=' read -r name options; do
    # Options are words.
    # shellcheck disable=SC2086
    if [ -n "$name" ]; then lily "$name" $options; fi
  done <<<"${LILY_ROWS:-}"
  llama
  if [ "$size" = mid ]; then
    record jlama "$("$java" -Xmx6g --add-modules jdk.incubator.vector --enable-native-access=ALL-UNNAMED \
      --add-opens java.base/java.nio=ALL-UNNAMED -cp "$jlama_path" JlamaBench "$peers/models/dense" 512 "$steps" 2>/dev/null)"
  fi
done
python3 "$here/compare_report.py" "$results" "$(cat "$peers/models/$size/active_bytes")" "$(cat "$peers/models/dense/active_bytes" 2>/dev/null || echo 0)"
