package selftest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"localembed/internal/testenv"
	"localembed/models"
)

// authors is config.json of a folder of the zoo as NomicBERT's authors spell it.
func authors() map[string]any {
	return map[string]any{
		"model_type": "nomic_bert", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 32, "n_positions": 180, "vocab_size": 220, "type_vocab_size": 1,
		"layer_norm_epsilon": 1e-12, "activation_function": "geglu", "rotary_emb_base": 10000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": false,
		"rotary_emb_scale_base": nil, "rotary_scaling_factor": nil, "prenorm": false, "use_rms_norm": false, "causal": false, "parallel_block": false,
		"qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false, "auto_map": map[string]string{"AutoModel": "code.py"},
	}
}

// The same weights give the same vectors whichever names config.json has.
func TestNomicAsItsAuthorsSpellIt(t *testing.T) {
	rt := loadORT(t)
	from := filepath.Join(testenv.Root(t), "models", "testdata", "zoo", "nomic-cls-one-type")
	put := func(change map[string]any) string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		c := authors()
		for k, v := range change {
			c[k] = v
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), b, 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if rows := testFolder(t, rt, put(nil), from+".reference.json", true); len(rows) != 2 {
		t.Errorf("%d calls were compared, want 2", len(rows))
	}
	for field, v := range map[string]any{
		"rotary_emb_fraction": 0.5, "rotary_emb_interleaved": true, "rotary_emb_scale_base": 512, "rotary_scaling_factor": 2, "prenorm": true,
		"use_rms_norm": true, "causal": true, "parallel_block": true, "num_experts": 8, "activation_function": "gelu",
	} {
		_ = refused(t, put(map[string]any{field: v}), field)
	}
	if _, err := models.Open(put(map[string]any{"qkv_proj_bias": true}), models.Options{}); err == nil {
		t.Error("biases that are asked for and are missing are not missed")
	}
}
