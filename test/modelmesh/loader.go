package modelmesh

import (
	"context"
	"fmt"
	"strings"
)

// Load is one attempt to load a concrete model. For an unload, only Namespace, ID and Instance are set.
type Load struct {
	Namespace, ID, Instance string
	// Type is the label that selects instances, Key the JSON for the puller.
	Type, Path, Key string
}

// Loader replaces puller and runtime: it returns nil once the model is loaded, or the error that the status of the model reports. The
// context ends when the instance no longer has to load the model, or the layer is closed.
type Loader func(context.Context, Load) error

// pullFailed is the prefix of errors of the puller.
const pullFailed = "Failed to pull model from storage due to error"

// ByPath loads immediately. It returns an error if the model has no storage, or if a word of the path is `missing` or `invalid`.
func ByPath(_ context.Context, l Load) error {
	if !strings.Contains(l.Key, `"storage_key"`) && !strings.Contains(l.Key, `"storage_params"`) && l.Path == "" {
		return fmt.Errorf("%s: Predictor Storage field missing", pullFailed)
	}
	for part := range strings.FieldsFuncSeq(l.Path, func(r rune) bool { return r == '/' || r == '-' }) {
		if part == "missing" || part == "invalid" {
			return fmt.Errorf("%s: no objects found for path %q", pullFailed, l.Path)
		}
	}
	return nil
}
