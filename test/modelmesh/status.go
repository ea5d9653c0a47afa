package modelmesh

import (
	"cmp"
	"maps"
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/mesh/meshpb"
)

// describe is the state of a concrete model. loadingIn is the instance that loads it right now, or ""; homeless is the error when
// no instance may load it, or "".
func describe(m *model, loadingIn, homeless string) *meshpb.ModelStatusInfo {
	if m == nil {
		return &meshpb.ModelStatusInfo{Status: meshpb.ModelStatusInfo_NOT_FOUND}
	}
	out := &meshpb.ModelStatusInfo{ModelCopyInfos: copies(m, loadingIn)}
	for _, instance := range slices.Sorted(maps.Keys(m.Fails)) {
		out.Errors = append(out.Errors, m.Fails[instance].Message)
	}
	switch {
	case len(m.Instances) > 0:
		out.Status = meshpb.ModelStatusInfo_LOADED
	case loadingIn != "":
		out.Status = meshpb.ModelStatusInfo_LOADING
	case homeless != "":
		out.Status, out.Errors = meshpb.ModelStatusInfo_LOADING_FAILED, []string{homeless}
	case len(m.FailedIn) > 0:
		out.Status = meshpb.ModelStatusInfo_LOADING_FAILED
	default:
		out.Status = meshpb.ModelStatusInfo_NOT_LOADED
	}
	return out
}

// copies lists what is known of every instance that has, loads or failed to load a model.
func copies(m *model, loadingIn string) []*meshpb.ModelStatusInfo_ModelCopyInfo {
	var out []*meshpb.ModelStatusInfo_ModelCopyInfo
	add := func(instance string, state meshpb.ModelStatusInfo_ModelStatus, at int64) {
		out = append(out, &meshpb.ModelStatusInfo_ModelCopyInfo{Location: instance, CopyStatus: state, Time: uint64(max(0, at))})
	}
	for instance, at := range m.Instances {
		add(instance, meshpb.ModelStatusInfo_LOADED, at)
	}
	for instance, at := range m.FailedIn {
		add(instance, meshpb.ModelStatusInfo_LOADING_FAILED, at)
	}
	if loadingIn != "" {
		add(loadingIn, meshpb.ModelStatusInfo_LOADING, m.LastUsed)
	}
	slices.SortFunc(out, func(a, b *meshpb.ModelStatusInfo_ModelCopyInfo) int {
		return cmp.Compare(a.GetLocation(), b.GetLocation())
	})
	return out
}

// describeV is the state of a vmodel with those of its two models.
func describeV(v *vmodel, active, target *meshpb.ModelStatusInfo) *meshpb.VModelStatusInfo {
	if v == nil {
		return &meshpb.VModelStatusInfo{ActiveModelStatus: describe(nil, "", "")}
	}
	out := &meshpb.VModelStatusInfo{
		Status: meshpb.VModelStatusInfo_DEFINED, Owner: v.Owner, ActiveModelId: v.Active, TargetModelId: v.Target,
		ActiveModelStatus: active, TargetModelStatus: target,
	}
	switch {
	case v.Active == v.Target:
	case v.Failed:
		out.Status = meshpb.VModelStatusInfo_TRANSITION_FAILED
	default:
		out.Status = meshpb.VModelStatusInfo_TRANSITIONING
	}
	return out
}
