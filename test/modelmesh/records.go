package modelmesh

import (
	"maps"
	"slices"
	"time"
)

// defaultOwner is the owner of vmodels that name none, MM_DEFAULT_VMODEL_OWNER of the pods.
const defaultOwner = "ksp"

// vmodel is the value of vmodels/<id>.
type vmodel struct {
	Owner  string `json:"o,omitempty"`
	Active string `json:"amid,omitempty"`
	Target string `json:"tmid,omitempty"`
	// Failed says that the last attempt to load the target came to nothing.
	Failed bool `json:"failed,omitempty"`
}

func ownerOr(owner string) string {
	if owner == "" {
		return defaultOwner
	}
	return owner
}

// points returns the concrete models that a vmodel keeps alive.
func (v *vmodel) points() []string {
	if v == nil {
		return nil
	}
	out := []string{v.Active, v.Target}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(id string) bool { return id == "" })
}

// model is the value of registry/<id>. Times are milliseconds since 1970, keys of maps are ids of instances.
type model struct {
	Type      string             `json:"type,omitempty"`
	Key       string             `json:"encKey,omitempty"`
	Path      string             `json:"mPath,omitempty"`
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

// loaded notes a copy.
func (m *model) loaded(instance string, now time.Time) {
	if m.Instances == nil {
		m.Instances = map[string]int64{}
	}
	m.Instances[instance], m.LastUsed = now.UnixMilli(), now.UnixMilli()
	m.heal(instance)
}

// failed notes a failed attempt.
func (m *model) failed(instance, message string, now time.Time) {
	if m.FailedIn == nil {
		m.FailedIn, m.Fails = map[string]int64{}, map[string]failure{}
	}
	m.FailedIn[instance], m.Fails[instance] = now.UnixMilli(), failure{Message: message}
}

func (m *model) heal(instance string) {
	delete(m.FailedIn, instance)
	delete(m.Fails, instance)
}

// forget removes instances that are gone, and failures that are older than the limit. It reports whether there were any.
func (m *model) forget(gone func(instance string) bool, failedBefore time.Time) bool {
	before := len(m.Instances) + len(m.FailedIn)
	maps.DeleteFunc(m.Instances, func(instance string, _ int64) bool { return gone(instance) })
	for instance, at := range m.FailedIn {
		if gone(instance) || at < failedBefore.UnixMilli() {
			m.heal(instance)
		}
	}
	return len(m.Instances)+len(m.FailedIn) != before
}
