"""Times forwards of llama.cpp for `outrider-bench decode --llama-cpp`.

Started with a GGUF file, the tokens of context and the number of threads. Reads lines "POSITIONS COUNT"
and answers each with the mean time of COUNT forwards that score POSITIONS positions, in nanoseconds.
"""

import sys
import time

path, context, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
try:
    import llama_cpp
except ImportError as error:
    print("import", error, flush=True)
    sys.exit(0)

MOST = 512
log = llama_cpp.llama_log_callback(lambda level, text, data: None)
llama_cpp.llama_log_set(log, None)
llama_cpp.llama_backend_init()
model = llama_cpp.llama_model_load_from_file(
    path.encode(), llama_cpp.llama_model_default_params()
)
if not model:
    print("load llama.cpp refuses the file", flush=True)
    sys.exit(0)
parameters = llama_cpp.llama_context_default_params()
parameters.n_ctx = context + MOST
parameters.n_batch = parameters.n_ubatch = MOST
parameters.n_threads = parameters.n_threads_batch = threads
runtime = llama_cpp.llama_init_from_model(model, parameters)
memory = llama_cpp.llama_get_memory(runtime)
vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
batch = llama_cpp.llama_batch_init(MOST, 0, 1)


def fill(first, count, scored):
    batch.n_tokens = count
    for i in range(count):
        batch.token[i] = (i * i * 31 + i * 7 + 3) % vocabulary
        batch.pos[i] = first + i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = 0
        batch.logits[i] = scored


def forward():
    started = time.perf_counter_ns()
    if llama_cpp.llama_decode(runtime, batch) != 0:
        raise RuntimeError("llama_decode failed")
    llama_cpp.llama_synchronize(runtime)
    return time.perf_counter_ns() - started


done = 0
while done < context:
    fill(done, min(MOST, context - done), 0)
    forward()
    done += batch.n_tokens
print("ready", flush=True)
for line in sys.stdin:
    positions, count = map(int, line.split())
    fill(context, positions, 1)
    took = 0
    # One more than counts: the first finds cold caches and threads asleep.
    for turn in range(count + 1):
        elapsed = forward()
        took += elapsed if turn else 0
        llama_cpp.llama_memory_seq_rm(memory, 0, context, -1)
    print(took // count, flush=True)
