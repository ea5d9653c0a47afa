package modelregistry

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// inputs joins the settings with what the cluster serves.
func (s Settings) inputs(served capability.Set) resources.Inputs {
	in := resources.Inputs{
		OpenShift:       served.Has(capability.Route),
		HasUserAPI:      served.Has(capability.UserGroup),
		HTTPRoutes:      served.Has(capability.HTTPRoute),
		ReferenceGrants: served.Has(capability.ReferenceGrant),
		Gateway:         s.Gateway,

		BackendTLSPolicies: served.Has(capability.BackendTLSPolicy),
	}
	if !in.OpenShift {
		in.Exposure = s.Exposure
	}
	return in
}

// ownDomain is the configured domain of registries that name none: that of Ingresses where they publish them.
func (s Settings) ownDomain(served capability.Set) string {
	if s.DefaultDomain == "" && s.Exposure.Ingress() && !served.Has(capability.Route) {
		return s.Exposure.IngressDomain
	}
	return s.DefaultDomain
}

// defaultDomain is the domain of Routes of registries that name none: the configured one, else that of the cluster.
func (r *registries) defaultDomain(m *v1beta1.ModelRegistry) string {
	return clusterdomain.Prefer(r.effective(m).ownDomain(r.served()), r.domain.Domain())
}

// awaitHub waits for the decisions of the platform and takes them for this reconcile.
func (r *registries) awaitHub(_ context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.hub.Await(); err != nil {
		return err
	}
	r.takeDecisions(m)
	return nil
}

// awaitDomain waits until the cluster has said which domain it has: a Route that was published must not lose its host because
// the manager has just started.
func (r *registries) awaitDomain(_ context.Context, m *v1beta1.ModelRegistry) error {
	if r.effective(m).DefaultDomain == "" && r.served().Has(capability.OpenShiftIngress) && !r.domain.Settled() {
		return &reconciler.Wait{For: "the domain of the cluster", Retry: time.Second}
	}
	return nil
}

// moveFields rewrites what older releases stored: oauthProxy becomes kubeRBACProxy, and on OpenShift there is always a proxy.
// It changes these fields only, and the change starts the next reconcile.
func (r *registries) moveFields(ctx context.Context, m *v1beta1.ModelRegistry) error {
	openShift := r.served().Has(capability.Route)
	if !needsMove(m, openShift) {
		return nil
	}
	if err := r.applier.Adjust(ctx, m, func() { moveProxy(&m.Spec, openShift) }); err != nil {
		return err
	}
	return &reconciler.Wait{For: "the change of its own spec"} // which is an event
}

func needsMove(m *v1beta1.ModelRegistry, openShift bool) bool {
	return m.Spec.OAuthProxy != nil || openShift && m.Spec.KubeRBACProxy == nil
}

// moveProxy does to a spec what moveFields does to the stored object. An older proxy beside the newer one is dropped; its image
// is that of another program, so it is never taken over.
func moveProxy(spec *v1beta1.ModelRegistrySpec, openShift bool) {
	if older := spec.OAuthProxy; older != nil {
		if spec.KubeRBACProxy == nil {
			spec.KubeRBACProxy = older.DeepCopy()
			spec.KubeRBACProxy.Image = ""
		}
		spec.OAuthProxy = nil
	}
	if openShift && spec.KubeRBACProxy == nil {
		spec.KubeRBACProxy = &v1beta1.ProxyConfig{}
	}
}

// fill puts the defaults of the running program into a spec. They are never stored.
func (s Settings) fill(m *v1beta1.ModelRegistry, domain string) {
	spec := &m.Spec
	defaultTo(&spec.Rest.Image, s.Images.REST)
	defaultPointer(&spec.Rest.Port, v1beta1.DefaultRESTPort)
	if spec.Rest.Resources == nil {
		spec.Rest.Resources = new(rules.DefaultRESTResources())
	}
	if spec.Postgres != nil {
		defaultTo(&spec.Postgres.Image, s.Images.Postgres)
		defaultPointer(&spec.Postgres.Port, v1beta1.DefaultPostgresPort)
	}
	if spec.MySQL != nil {
		defaultPointer(&spec.MySQL.Port, v1beta1.DefaultMySQLPort)
	}
	if proxy := spec.KubeRBACProxy; proxy != nil {
		defaultTo(&proxy.Image, s.Images.KubeRBACProxy)
		defaultTo(&proxy.Domain, domain)
		defaultTo(&proxy.ServiceRoute, v1beta1.RouteEnabled)
		defaultPointer(&proxy.Port, v1beta1.DefaultProxyPort)
		defaultPointer(&proxy.RoutePort, v1beta1.DefaultRoutePort)
		if proxy.TLSCertificateSecret == nil {
			proxy.TLSCertificateSecret = &v1beta1.SecretKeyValue{Name: resources.ServingSecretName(m), Key: corev1.TLSCertKey}
		}
		if proxy.TLSKeySecret == nil {
			proxy.TLSKeySecret = &v1beta1.SecretKeyValue{Name: resources.ServingSecretName(m), Key: corev1.TLSPrivateKeyKey}
		}
	}
}

// completed returns the registry as it is deployed: a copy in which every default stands and a generated database is one like any
// other.
func (r *registries) completed(m *v1beta1.ModelRegistry) (*v1beta1.ModelRegistry, error) {
	used, err := r.admitted(m)
	if err != nil {
		return nil, err
	}
	if generates(m) {
		data, err := r.credentials(m)
		if err != nil {
			return nil, err
		}
		connect(used, data)
	}
	moveProxy(&used.Spec, r.served().Has(capability.Route))
	r.effective(m).fill(used, r.defaultDomain(m))
	return used, nil
}

// generates says whether the registry has a database of its own.
func generates(m *v1beta1.ModelRegistry) bool {
	p := m.Spec.Postgres
	return p != nil && p.GenerateDeployment != nil && *p.GenerateDeployment
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func defaultPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
