package modelmesh

import (
	"maps"
	"slices"
)

// defaultOwner is the owner of a vmodel whose request names none: MM_DEFAULT_VMODEL_OWNER of the pods.
const defaultOwner = "ksp"

// vmodel is the value of vmodels/<id>.
type vmodel struct {
	Owner  string `json:"o,omitempty"`
	Active string `json:"amid,omitempty"`
	Target string `json:"tmid,omitempty"`
	// Failed reports that the last attempt to load the target failed.
	Failed bool `json:"failed,omitempty"`
}

// allowsOwner reports whether requests with the owner may access the vmodel; an empty owner may access every vmodel.
func (v *vmodel) allowsOwner(owner string) bool { return owner == "" || v.Owner == owner }

// references returns the concrete models of a vmodel.
func (v *vmodel) references() []string {
	if v == nil {
		return nil
	}
	out := []string{v.Active, v.Target}
	slices.Sort(out)
	return slices.Compact(out)
}

// model is the value of registry/<id>. Times are milliseconds since 1970, keys of maps are ids of instances.
type model struct {
	Type string `json:"type,omitempty"`
	Key  string `json:"encKey,omitempty"`
	Path string `json:"mPath,omitempty"`
	// Instances are the times at which instances started to load the model. The end of a load is not recorded.
	Instances map[string]int64   `json:"instanceIds,omitempty"`
	FailedIn  map[string]int64   `json:"failedIn,omitempty"`
	Fails     map[string]failure `json:"fails,omitempty"`
	Refs      int                `json:"refs,omitempty"`
	AutoDel   bool               `json:"autoDel,omitempty"`
	LastUsed  int64              `json:"lu,omitempty"`
}

type failure struct {
	Message string `json:"msg"`
}

func (m *model) clone() *model {
	out := *m
	out.Instances, out.FailedIn, out.Fails = copyMap(m.Instances), copyMap(m.FailedIn), copyMap(m.Fails)
	return &out
}

func copyMap[V any](in map[string]V) map[string]V {
	out := map[string]V{}
	maps.Copy(out, in)
	return out
}
