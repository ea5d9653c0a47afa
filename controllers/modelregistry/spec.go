package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// awaitHub waits for the decisions of the platform and takes them for this reconcile.
func (r *registryReconciler) waitForPlatform(_ context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.aihub.Await(); err != nil {
		return err
	}
	r.stateOf(m).platform = registry.DetectPlatform(r.settings.ModelRegistry, r.aihub, r.served(), r.domain)
	return nil
}

// awaitDomain waits until it is known what the host of a Route is.
func (r *registryReconciler) waitForDomain(_ context.Context, m *v1beta1.ModelRegistry) error {
	return r.stateOf(m).platform.AwaitDomain()
}

// checkPlace leaves registries alone that live outside of the namespace which the settings name: nothing is read there. What they
// have made stays as it is.
func (r *registryReconciler) validateNamespace(_ context.Context, m *v1beta1.ModelRegistry) error {
	wanted := r.stateOf(m).platform.Namespace
	if wanted == "" || m.Namespace == wanted {
		return nil
	}
	setCondition(m, ConditionAvailable, metav1.ConditionUnknown, ReasonMisplaced, fmt.Sprintf("registries live in namespace %s "+
		"(REGISTRIES_NAMESPACE, or spec.instancesNamespace of the AIHub); nothing of this one is watched or changed: create it there, or change the setting", wanted))
	if m.Spec.KubeRBACProxy != nil {
		setCondition(m, ConditionProxy, metav1.ConditionUnknown, ReasonMisplaced, "the registry is not in namespace "+wanted)
	}
	return &reconciler.Wait{For: "the registry to be in namespace " + wanted, Stalled: true}
}

// moveFields rewrites what older releases stored: oauthProxy becomes kubeRBACProxy, and on OpenShift there is always a proxy.
// It changes these fields only, and the change starts the next reconcile.
func (r *registryReconciler) migrateSpec(ctx context.Context, m *v1beta1.ModelRegistry) error {
	openShift := r.stateOf(m).platform.Served.Has(capability.Route)
	if m.Spec.OAuthProxy == nil && (m.Spec.KubeRBACProxy != nil || !openShift) {
		return nil
	}
	if err := r.applier.PatchExisting(ctx, m, func() { migrateProxy(&m.Spec, openShift) }); err != nil {
		return err
	}
	return &reconciler.Wait{For: "the change of its own spec"} // which is an event
}

// moveProxy does to a spec what moveFields does to the stored object. An older proxy beside the newer one is dropped; its image
// is that of another program, so it is never taken over.
func migrateProxy(spec *v1beta1.ModelRegistrySpec, openShift bool) {
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

// checkSpec refuses what no author may let pods use, which admission does not let pass, and names of other things; and a spec that no
// webhook has seen, where the settings say that there may be some.
func (r *registryReconciler) validateSpec(_ context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.settings.Authors.Forbidden(rules.Uses(r.settings.Authors, m)); err != nil {
		return rejectSpec(m, err)
	}
	if detail := rules.ReservedName(m.Name); detail != "" && isNeverDeployed(m, detail) {
		return rejectSpec(m, errors.New("metadata.name: "+detail))
	}
	s := r.stateOf(m)
	if s.defaulted = nil; !s.platform.ValidateInReconciler {
		return nil
	}
	facts := RuleSettings(s.platform.ModelRegistry, s.platform.Served)
	admitted, err := rules.Default(m, facts)
	if err != nil {
		return err
	}
	if errs := rules.Validate(admitted, facts); len(errs) > 0 {
		return rejectSpec(m, errs.ToAggregate())
	}
	s.defaulted = admitted
	return nil
}

// untouched reports whether nothing was ever made for a registry, by its status, which has no more than the given refusal. Those that
// exist keep their names.
func isNeverDeployed(m *v1beta1.ModelRegistry, refusal string) bool {
	available := meta.FindStatusCondition(m.Status.Conditions, ConditionAvailable)
	return available == nil || available.Status == metav1.ConditionFalse && strings.Contains(available.Message, refusal)
}

// refuse ends the reconcile until the spec changes: nothing else can help.
func rejectSpec(m *v1beta1.ModelRegistry, err error) error {
	reportFailure(m, err)
	return &reconciler.Wait{For: "a valid spec", Stalled: true}
}

// RuleSettings are what the webhooks must know about the settings and the cluster.
func RuleSettings(s config.ModelRegistry, served capability.Set) rules.Settings {
	return rules.Settings{
		Namespace: s.Namespace, OpenShift: served.Has(capability.Route),
		RESTImages: []string{s.Images.REST, "quay.io/opendatahub/model-registry:latest"},
	}
}

// inputs are what of the platform decides about the objects of a registry.
func buildInputs(m *v1beta1.ModelRegistry, p *registry.Platform) resources.Inputs {
	proxy := m.Spec.KubeRBACProxy
	return resources.Inputs{
		Publishing: p.Publishing(), HasUserAPI: p.Served.Has(capability.UserGroup),
		HasCustomDomain:    proxy != nil && proxy.Domain != "",
		ServingCertificate: managesCertificate(m),
	}
}

// issued reports whether the certificate of the proxy comes from the platform or from us, and not from the user.
func managesCertificate(m *v1beta1.ModelRegistry) bool {
	return m.Spec.KubeRBACProxy == nil || m.Spec.KubeRBACProxy.TLSCertificateSecret == nil
}

// complete returns the registry as it is deployed: a copy in which every default stands and a generated database, which has the credentials,
// is one like any other.
func withDefaults(m *v1beta1.ModelRegistry, p *registry.Platform, to credentials) *v1beta1.ModelRegistry {
	used := m.DeepCopy()
	if generatesDatabase(used) {
		setConnection(used, to)
	}
	migrateProxy(&used.Spec, p.Served.Has(capability.Route))
	setDefaults(used, p)
	return used
}

// fill puts the defaults of the running program into a spec. They are never stored.
func setDefaults(m *v1beta1.ModelRegistry, p *registry.Platform) {
	spec := &m.Spec
	setDefault(&spec.Rest.Image, p.Images.REST)
	setDefaultPointer(&spec.Rest.Port, v1beta1.DefaultRESTPort)
	setDefaultPointer(&spec.Rest.Resources, rules.DefaultRESTResources())
	if spec.Postgres != nil {
		setDefault(&spec.Postgres.Image, p.Images.Postgres)
		setDefaultPointer(&spec.Postgres.Port, v1beta1.DefaultPostgresPort)
	}
	if spec.MySQL != nil {
		setDefaultPointer(&spec.MySQL.Port, v1beta1.DefaultMySQLPort)
	}
	if proxy := spec.KubeRBACProxy; proxy != nil {
		setDefault(&proxy.Image, p.Images.KubeRBACProxy)
		setDefault(&proxy.Domain, defaultDomain(p))
		setDefault(&proxy.ServiceRoute, v1beta1.RouteEnabled)
		setDefaultPointer(&proxy.Port, v1beta1.DefaultProxyPort)
		setDefaultPointer(&proxy.RoutePort, v1beta1.DefaultRoutePort)
		setDefaultPointer(&proxy.TLSCertificateSecret, v1beta1.SecretKeyValue{Name: resources.ServingSecretName(m), Key: corev1.TLSCertKey})
		setDefaultPointer(&proxy.TLSKeySecret, v1beta1.SecretKeyValue{Name: resources.ServingSecretName(m), Key: corev1.TLSPrivateKeyKey})
	}
}

// defaultDomain is the domain of registries that name none: the configured one, or that of Ingresses where they publish registries, else
// that of the cluster.
func defaultDomain(p *registry.Platform) string {
	own := p.DefaultDomain
	if own == "" && p.Exposure.Ingress() && !p.Served.Has(capability.Route) {
		own = p.Exposure.IngressDomain
	}
	return clusterdomain.Prefer(own, p.Routers)
}

// generates says whether the registry has a database of its own.
func generatesDatabase(m *v1beta1.ModelRegistry) bool {
	p := m.Spec.Postgres
	return p != nil && p.GenerateDeployment != nil && *p.GenerateDeployment
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setDefaultPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
