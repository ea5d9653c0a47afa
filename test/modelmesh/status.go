package modelmesh

import (
	"cmp"
	"slices"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// describe returns the state of a concrete model.
func (l *Layer) describe(id string) *meshpb.ModelStatusInfo {
	m := l.models[id]
	if m == nil {
		return &meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_NOT_FOUND}
	}
	out := &meshpb.ModelStatusInfo{ModelCopyInfos: copies(m), Errors: problems(m)}
	loading, loaded := l.runningOf(id)
	switch {
	case loaded:
		out.Status = meshpb.ModelStatusInfo_LOADED
	case loading:
		out.Status = meshpb.ModelStatusInfo_LOADING
	case len(m.FailedIn) > 0:
		out.Status = meshpb.ModelStatusInfo_LOADING_FAILED
	default:
		return &meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_NOT_LOADED}
	}
	return out
}

// runningOf reports whether a live instance loads a model, and whether one has loaded it.
func (l *Layer) runningOf(id string) (loading, loaded bool) {
	for _, r := range l.runs[id] {
		loading, loaded = loading || !r.loaded, loaded || r.loaded
	}
	return loading, loaded
}

// copies lists the instances that have, load or failed to load a model, the newest first. It reports the state only of failed
// copies.
func copies(m *model) []*meshpb.ModelStatusInfo_ModelCopyInfo {
	var out []*meshpb.ModelStatusInfo_ModelCopyInfo
	add := func(all map[string]int64, state meshpb.ModelStatusInfo_ModelStatus) {
		for instance, at := range all {
			out = append(out, &meshpb.ModelStatusInfo_ModelCopyInfo{Location: instance, CopyStatus: state, Time: uint64(max(0, at))})
		}
	}
	add(m.Instances, meshpb.ModelStatusInfo_UNKNOWN)
	add(m.FailedIn, meshpb.ModelStatusInfo_LOADING_FAILED)
	slices.SortFunc(out, func(a, b *meshpb.ModelStatusInfo_ModelCopyInfo) int {
		return cmp.Or(-cmp.Compare(a.GetTime(), b.GetTime()), cmp.Compare(a.GetLocation(), b.GetLocation()))
	})
	return out
}

// problems returns the texts of the failures, the newest first.
func problems(m *model) []string {
	var out []string
	for _, c := range copies(m) {
		if f, failed := m.Fails[c.GetLocation()]; failed && c.GetCopyStatus() == meshpb.ModelStatusInfo_LOADING_FAILED {
			out = append(out, f.Message)
		}
	}
	return out
}

// noInstance returns the answer to an order that no instance can execute.
func noInstance(m *model, text string) *meshpb.ModelStatusInfo {
	return &meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_LOADING_FAILED, Errors: []string{text}, ModelCopyInfos: copies(m)}
}

// describeV returns the state of a vmodel. active is the result of an order for its active model, nil without an order.
func (l *Layer) describeV(v *vmodel, active *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
	if v == nil {
		return &meshpb.VModelStatusInfo{Status: meshpb.VModelStatusInfo_NOT_FOUND}
	}
	if active == nil {
		active = l.describe(v.Active)
	}
	out := &meshpb.VModelStatusInfo{
		Status: meshpb.VModelStatusInfo_DEFINED, Owner: v.Owner, ActiveModelId: v.Active, TargetModelId: v.Target, ActiveModelStatus: active,
	}
	if v.Active == v.Target {
		return out
	}
	target := l.describe(v.Target)
	failed := target.GetStatus() == meshpb.ModelStatusInfo_LOADING_FAILED
	if target.GetStatus() == meshpb.ModelStatusInfo_NOT_LOADED || failed && !v.Failed {
		target.Status = meshpb.ModelStatusInfo_LOADING // even if no instance can load it
	}
	out.TargetModelStatus = target
	if out.Status = meshpb.VModelStatusInfo_TRANSITIONING; v.Failed {
		out.Status = meshpb.VModelStatusInfo_TRANSITION_FAILED
	}
	return out
}
