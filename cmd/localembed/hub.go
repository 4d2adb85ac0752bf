package main

import (
	"context"
	"slices"

	"localembed/internal/hub"
	"localembed/internal/selftest"
	"localembed/models"
)

// openModel opens the model that --model names, and brings it from the hub where it is
// no folder here. The revision is the hub's commit, "" for a folder.
func openModel(ctx context.Context, ui *ui, name string, o models.Options) (m *models.Model, revision string, err error) {
	dir := name
	if n, ok := hub.Parse(name); ok && !hub.IsFolder(name) {
		fetched, err := hub.Fetch(ctx, n, hub.Options{
			Log: ui.log, Progress: ui.download,
			Wanted: func(dir string, names []string) []string {
				want := models.Wanted(dir, names, o.ONNX)
				if slices.Contains(names, selftest.ReferenceFile) {
					want = append([]string{selftest.ReferenceFile}, want...)
				}
				return want
			},
		})
		if err != nil {
			return nil, "", err
		}
		dir, revision = fetched.Dir, fetched.Commit
		ui.log.Info("model from the hub", "model", n.Model, "commit", revision, "folder", dir)
	} else if ok {
		ui.log.Info("the model is a folder here, not a hub's", "folder", name)
	}
	m, err = models.Open(dir, o)
	return m, revision, err
}
