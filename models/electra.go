package models

// electra is ELECTRA: BERT with embeddings of another width than the layers.
func electra(c config) encoder {
	e := bert(c)
	e.prefix = "electra."
	e.width = or(c.Embedding, 128)
	if e.width != e.hidden {
		e.project = "embeddings_project"
	}
	return e
}
