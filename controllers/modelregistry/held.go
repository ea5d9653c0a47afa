package modelregistry

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

// held is what waits while a registry gets a proxy or loses it: what leads to the server follows the pods that serve, and not the
// template of those that are to come.
type held struct {
	// pods: those that are ready are all of the other form.
	pods bool
	// proxied: the registry is to have a proxy.
	proxied bool
	// secret: there is no certificate for the proxy, so that pods with it could not start.
	secret bool
}

func (r *registries) held(ctx context.Context, m, used *v1beta1.ModelRegistry) (held, error) {
	h := held{proxied: used.Spec.KubeRBACProxy != nil}
	pods, err := r.podsOf(ctx, m, resources.ServerSelector(m))
	if err != nil {
		return h, err
	}
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() || !isReady(&pods[i]) {
			continue
		}
		if hasProxy(&pods[i]) == h.proxied {
			return held{proxied: h.proxied}, nil
		}
		h.pods = true
	}
	if !h.pods || !h.proxied {
		return h, nil
	}
	resolved, err := r.references.Resolve(ctx, m.UID, m.Namespace, consumed(m, used))
	if err != nil {
		return h, err
	}
	certificate := servingReferences(used)
	for _, missing := range resolved.Missing {
		h.secret = h.secret || slices.ContainsFunc(certificate, func(ref reference.Reference) bool { return ref.ID() == missing.ID() })
	}
	return h, nil
}

// without leaves out what is not to be written yet. A Service that gets a proxy is written, in the form of the pods that serve: it
// asks the platform for the certificate.
func (h held) without(desired apply.Desired) apply.Desired {
	if !h.pods {
		return desired
	}
	return slices.DeleteFunc(slices.Clone(desired), func(o apply.Object) bool {
		kind, _, err := o.Place()
		switch {
		case err != nil:
			return false
		case kind == capability.Route, kind == capability.HTTPRoute, kind == ingressKind:
			return true
		case kind == serviceKind:
			return !h.proxied
		}
		return kind == deploymentKind && h.secret
	})
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func hasProxy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == rbacproxy.ContainerName })
}
