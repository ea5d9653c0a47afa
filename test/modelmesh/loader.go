package modelmesh

import (
	"context"
	"fmt"
	"strings"
)

// Load is one attempt to load a concrete model.
type Load struct {
	Namespace, ID, Instance string
	// Type is the label that selects instances, Key the JSON for the puller.
	Type, Path, Key string
}

// Loader replaces puller and runtime: it returns when the model is loaded, or the error for the status of the model. The context
// ends when the model or the instance is removed.
type Loader func(context.Context, Load) error

// pullFailed is the prefix of errors of the puller.
const pullFailed = "Failed to pull model from storage due to error"

// ByPath loads immediately. It returns an error without any storage, or if a word of the path is `missing` or `invalid`.
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
