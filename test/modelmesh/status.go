package modelmesh

import (
	"cmp"
	"slices"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// describe returns the status of a concrete model.
func (l *Layer) describe(id string) *meshpb.ModelStatusInfo {
	m := l.models[id]
	if m == nil {
		return &meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_NOT_FOUND}
	}
	out := &meshpb.ModelStatusInfo{ModelCopyInfos: copies(m), Errors: problems(m)}
	loading, loaded := l.loadState(id)
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

// loadState reports whether an instance loads a model, and whether one has loaded it.
func (l *Layer) loadState(id string) (loading, loaded bool) {
	for _, r := range l.modelCopies[id] {
		loading, loaded = loading || !r.loaded, loaded || r.loaded
	}
	return loading, loaded
}

// copies returns the instances that have, load or failed to load a model, newest first. Only failed copies have a status.
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

// problems returns the messages of the failures, newest first.
func problems(m *model) []string {
	var out []string
	for _, c := range copies(m) {
		if f, failed := m.Fails[c.GetLocation()]; failed && c.GetCopyStatus() == meshpb.ModelStatusInfo_LOADING_FAILED {
			out = append(out, f.Message)
		}
	}
	return out
}

// noInstance returns the status of a model that no instance can load.
func noInstance(m *model, text string) *meshpb.ModelStatusInfo {
	return &meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_LOADING_FAILED, Errors: []string{text}, ModelCopyInfos: copies(m)}
}

// describeVModel returns the status of a vmodel. active is the status of its active model, nil for that from describe.
func (l *Layer) describeVModel(v *vmodel, active *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
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
