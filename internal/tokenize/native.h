// The entry points of libtokenizers.a that this package calls. The structs are
// those of native/tokenizers/src; tokenizers_* comes from the Rust source of
// github.com/daulet/tokenizers.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct localembed_facts {
	uint32_t vocab_size;
	uint32_t head;
	uint32_t tail;
};

struct localembed_cuts {
	uint8_t before[128];
	uint8_t before_ideograph;
	uint32_t run_end;
};

struct localembed_limits {
	const uint8_t *prompt;
	size_t prompt_len;
	size_t max_tokens;
	size_t first_bytes;
	size_t tail;
	struct localembed_cuts cuts;
	const void *longs;
};

struct localembed_texts {
	const uint8_t *data;
	const int64_t *ends;
	const int32_t *docs;
	size_t count;
};

struct localembed_ids {
	uint32_t *ids;
	int64_t *ends;
	bool *truncated;
	uint8_t *message;
	size_t message_room;
	size_t message_len;
	size_t work;
};

void tokenizers_free_tokenizer(void *tokenizer);

void *localembed_load(const uint8_t *bytes, size_t len, struct localembed_ids *out);
void *localembed_long(const void *tokenizer, bool small, bool letters);
void localembed_free_long(void *longs);
bool localembed_describe(const void *tokenizer, struct localembed_facts *facts);
size_t localembed_encode(const void *tokenizer, const struct localembed_limits *limits,
	const struct localembed_texts *texts, struct localembed_ids *out);
