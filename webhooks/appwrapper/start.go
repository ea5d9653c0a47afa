package appwrapper

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// isStart reports whether an update starts an AppWrapper, sets its queue, or changes podSetInfos, which are merged into its pod templates.
func isStart(old, updated *v1beta2.AppWrapper) bool {
	if old.Spec.Suspend && !updated.Spec.Suspend || isQueued(updated) && old.Labels[v1beta2.LabelQueue] != updated.Labels[v1beta2.LabelQueue] {
		return true
	}
	for i := range updated.Spec.Components { // immutableErrors ensures an equal number
		if !equality.Semantic.DeepEqual(old.Spec.Components[i].PodSetInfos, updated.Spec.Components[i].PodSetInfos) {
			return true
		}
	}
	return false
}

// reviewStart rejects a start by a user who may not create the components, because the manager creates them with its own permissions. Users who
// may update workloads/status, such as Kueue, are exempt: they could admit a Workload instead.
func (v *validator) reviewStart(ctx context.Context, request admission.Request, wrapper *v1beta2.AppWrapper) (field.ErrorList, error) {
	settings, err := v.settings(ctx)
	if err != nil || !settings.ReviewAccess {
		return nil, err
	}
	c := v.newCreationValidator(request, wrapper)
	mayAdmit, err := c.access(ctx, c.user, authorizationv1.ResourceAttributes{
		Namespace: request.Namespace, Verb: "update", Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads", Subresource: "status"})
	if err != nil {
		return nil, fmt.Errorf("checking whether %s may update workloads/status: %w", c.user.Username, err)
	}
	if mayAdmit {
		return nil, nil
	}
	for i := range wrapper.Spec.Components {
		template := field.NewPath("spec", "components").Index(i).Child("template")
		if object := c.decode(&wrapper.Spec.Components[i], template); object != nil {
			c.checkKind(ctx, object, template)
		}
	}
	return c.errs, nil
}
