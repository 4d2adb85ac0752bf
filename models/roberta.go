package models

// roberta is RoBERTa, and XLM-RoBERTa and CamemBERT, which differ from it only
// in their tokenizers: BERT with positions that are counted from the pad id on.
func roberta(c config) encoder {
	e := bert(c)
	e.prefix = "roberta."
	pad := c.padding()
	e.padding = &pad
	return e
}
