package runtimes

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// guard is the sidecar of the pods of a namespace. Where one namespace is served there is none: what it needs beside it, an account
// with rights on the cluster among it, is not made there.
func (s *server) guard(f *facts) *authproxy.Proxy {
	if s.Namespaces.OnlyOwn() {
		return nil
	}
	return authproxy.Decide(f.settings, f.namespace, s.Served())
}

// guards are what has to stand before any Deployment of a namespace is written. Where one namespace is served there are no rights for it.
func (s *server) guards(f *facts) (apply.Desired, error) {
	if s.Namespaces.OnlyOwn() || !f.wanted() {
		return nil, nil
	}
	return resources.BuildGuards(s.inputs(f))
}

// unguard removes the guards that are not wanted any more.
func (s *server) unguard(ctx context.Context, namespace string, wanted apply.Desired) error {
	if s.Namespaces.OnlyOwn() {
		return nil
	}
	unwanted := func(kind schema.GroupVersionKind, name string) func(metav1.Object) bool {
		return func(o metav1.Object) bool {
			return o.GetName() == name && !slices.ContainsFunc(wanted, func(w apply.Object) bool {
				k, _, err := w.Place()
				return err == nil && k == kind
			})
		}
	}
	return errors.Join(
		s.removeAll(ctx, namespace, policyKind, unwanted(policyKind, resources.PolicyName)),
		s.removeAll(ctx, namespace, configMapKind, unwanted(configMapKind, authproxy.RulesConfigMap)),
	)
}

// unguarded says that a sidecar was asked for which cannot be; nothing else.
func (s *server) unguarded(f *facts) []string {
	if f.settings.AuthProxy.Mode != meshsettings.AuthProxyAlways || !s.Namespaces.OnlyOwn() {
		return nil
	}
	return []string{"setting authProxy.mode always has no effect where the manager serves its own namespace only, and REST is not guarded: " +
		"serve all namespaces, or close the port by a NetworkPolicy"}
}

// account is the service account of pods, "" for the one that every namespace has. Where there is no guard, none is made.
func (s *server) account(settings meshsettings.Settings) string {
	if s.Namespaces.OnlyOwn() {
		return settings.ServiceAccountName
	}
	return authproxy.AccountOf(settings, s.Served())
}

// originalProxy is the sidecar that the original put into a live pod template; nil where there is none.
func originalProxy(namespace string, live *corev1.PodTemplateSpec) *authproxy.Proxy {
	for i := range live.Spec.Containers {
		if c := &live.Spec.Containers[i]; c.Name == oauthproxy.ContainerName {
			return authproxy.Original(namespace, live.Spec.ServiceAccountName, c.Image)
		}
	}
	return nil
}
