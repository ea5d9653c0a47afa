package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// waitForPlatform waits for the AIHub and stores a snapshot of the platform settings for this reconcile.
func (r *registryReconciler) waitForPlatform(_ context.Context, m *v1beta1.ModelRegistry) (err error) {
	r.stateOf(m).platform, err = servers.DetectPlatform(r.settings.ModelRegistry, r.aihub, r.served(), r.domain)
	return err
}

// waitForDomain waits until the domain of Routes is known.
func (r *registryReconciler) waitForDomain(_ context.Context, m *v1beta1.ModelRegistry) error {
	return r.stateOf(m).platform.WaitForDomain()
}

// validateNamespace stops the reconcile of registries outside of the configured namespace. Their objects are neither read nor changed.
func (r *registryReconciler) validateNamespace(_ context.Context, m *v1beta1.ModelRegistry) error {
	namespace := r.stateOf(m).platform.Namespace
	if namespace == "" || m.Namespace == namespace {
		return nil
	}
	setCondition(m, ConditionAvailable, metav1.ConditionUnknown, ReasonMisplaced, fmt.Sprintf("registries must be in namespace %s "+
		"(REGISTRIES_NAMESPACE, or spec.instancesNamespace of the AIHub); the operator ignores this registry: create it there, or change the setting", namespace))
	if m.Spec.KubeRBACProxy != nil {
		setCondition(m, ConditionProxy, metav1.ConditionUnknown, ReasonMisplaced, "the registry must be in namespace "+namespace)
	}
	return &reconciler.Wait{For: "the registry to be in namespace " + namespace, Stalled: true}
}

// migrateSpec patches the spec of stored objects: oauthProxy becomes kubeRBACProxy, and on OpenShift a missing proxy is added. The event of
// the patch starts the next reconcile.
func (r *registryReconciler) migrateSpec(ctx context.Context, m *v1beta1.ModelRegistry) error {
	openShift := r.stateOf(m).platform.Served.Has(capability.Route)
	if m.Spec.OAuthProxy == nil && (m.Spec.KubeRBACProxy != nil || !openShift) {
		return nil
	}
	if err := r.Applier.PatchExisting(ctx, m, func() { migrateProxy(&m.Spec, openShift) }); err != nil {
		return err
	}
	return &reconciler.Wait{For: "the event of the changed spec"}
}

// migrateProxy moves oauthProxy to kubeRBACProxy, or drops it if kubeRBACProxy is set. The image is not copied, because it contains another
// program. On OpenShift, a missing proxy is added.
func migrateProxy(spec *v1beta1.ModelRegistrySpec, openShift bool) {
	if oauthProxy := spec.OAuthProxy; oauthProxy != nil {
		if spec.KubeRBACProxy == nil {
			spec.KubeRBACProxy = oauthProxy.DeepCopy()
			spec.KubeRBACProxy.Image = ""
		}
		spec.OAuthProxy = nil
	}
	if openShift && spec.KubeRBACProxy == nil {
		spec.KubeRBACProxy = &v1beta1.ProxyConfig{}
	}
}

// validateSpec rejects references and names that admission forbids, for objects that were stored without admission. If ValidateInReconciler
// is set, it also applies the defaults and validation of the webhooks.
func (r *registryReconciler) validateSpec(_ context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.settings.AdmissionRules.Forbidden(rules.References(m)); err != nil {
		return rejectSpec(m, err)
	}
	if detail := rules.ReservedNameProblem(m.Name); detail != "" && wasNeverDeployed(m, detail) {
		return rejectSpec(m, errors.New("metadata.name: "+detail))
	}
	s := r.stateOf(m)
	if s.defaulted = nil; !s.platform.ValidateInReconciler {
		return nil
	}
	ruleSettings := RuleSettings(s.platform.ModelRegistry, s.platform.Served)
	defaulted, err := rules.Default(m, ruleSettings)
	if err != nil {
		return err
	}
	if errs := rules.Validate(defaulted, ruleSettings); len(errs) > 0 {
		return rejectSpec(m, errs.ToAggregate())
	}
	s.defaulted = defaulted
	return nil
}

// wasNeverDeployed reports whether a registry is new, or its status shows that it was rejected because of its name. Deployed registries
// keep their names.
func wasNeverDeployed(m *v1beta1.ModelRegistry, rejection string) bool {
	available := meta.FindStatusCondition(m.Status.Conditions, ConditionAvailable)
	return available == nil || available.Status == metav1.ConditionFalse && strings.Contains(available.Message, rejection)
}

// rejectSpec sets the registry unavailable and returns a stalled Wait.
func rejectSpec(m *v1beta1.ModelRegistry, err error) error {
	reportFailure(m, err)
	return &reconciler.Wait{For: "a valid spec", Stalled: true}
}

// RuleSettings returns the settings of the webhooks.
func RuleSettings(s config.ModelRegistry, served capability.Set) rules.Settings {
	return rules.Settings{
		Namespace: s.Namespace, HasRoutes: served.Has(capability.Route),
		RESTImages: []string{s.Images.REST, "quay.io/opendatahub/model-registry:latest"},
	}
}

// buildInputs returns the exposure settings of the platform, and whether the user sets domain and certificate of the proxy. m is the
// registry before withDefaults, which sets both.
func buildInputs(m *v1beta1.ModelRegistry, p *servers.Platform) resources.Inputs {
	proxy := m.Spec.KubeRBACProxy
	return resources.Inputs{
		Publishing:         p.Publishing(),
		HasCustomDomain:    proxy != nil && proxy.Domain != "",
		RequestCertificate: managesCertificate(m),
	}
}

// managesCertificate reports whether platform or operator, and not the user, provides the certificate of the proxy.
func managesCertificate(m *v1beta1.ModelRegistry) bool {
	return m.Spec.KubeRBACProxy == nil || m.Spec.KubeRBACProxy.TLSCertificateSecret == nil
}

// withDefaults returns a copy of the registry with all defaults. The connection fields refer to the generated database, if there is one.
func withDefaults(m *v1beta1.ModelRegistry, p *servers.Platform, creds credentials) *v1beta1.ModelRegistry {
	effective := m.DeepCopy()
	if generatesDatabase(effective) {
		setConnection(effective, creds)
	}
	migrateProxy(&effective.Spec, p.Served.Has(capability.Route))
	setDefaults(effective, p)
	return effective
}

// setDefaults sets defaults that the controller never stores in the spec.
func setDefaults(m *v1beta1.ModelRegistry, p *servers.Platform) {
	spec := &m.Spec
	spec.Rest.Image = cmp.Or(spec.Rest.Image, p.Images.REST)
	spec.Rest.Port = cmp.Or(spec.Rest.Port, new(v1beta1.DefaultRESTPort))
	spec.Rest.Resources = cmp.Or(spec.Rest.Resources, new(rules.DefaultRESTResources()))
	if spec.Postgres != nil {
		spec.Postgres.Image = cmp.Or(spec.Postgres.Image, p.Images.Postgres)
		spec.Postgres.Port = cmp.Or(spec.Postgres.Port, new(v1beta1.DefaultPostgresPort))
	}
	if spec.MySQL != nil {
		spec.MySQL.Port = cmp.Or(spec.MySQL.Port, new(v1beta1.DefaultMySQLPort))
	}
	if proxy := spec.KubeRBACProxy; proxy != nil {
		proxy.Image = cmp.Or(proxy.Image, p.Images.KubeRBACProxy)
		proxy.Domain = cmp.Or(proxy.Domain, defaultDomain(p))
		proxy.ServiceRoute = cmp.Or(proxy.ServiceRoute, v1beta1.RouteEnabled)
		proxy.Port = cmp.Or(proxy.Port, new(v1beta1.DefaultProxyPort))
		proxy.RoutePort = cmp.Or(proxy.RoutePort, new(v1beta1.DefaultRoutePort))
		proxy.TLSCertificateSecret = cmp.Or(proxy.TLSCertificateSecret, &v1beta1.SecretKeyValue{Name: resources.ServingSecretName(m), Key: corev1.TLSCertKey})
		proxy.TLSKeySecret = cmp.Or(proxy.TLSKeySecret, &v1beta1.SecretKeyValue{Name: resources.ServingSecretName(m), Key: corev1.TLSPrivateKeyKey})
	}
}

// defaultDomain returns the configured domain, or that of Ingresses if they publish registries, or that of the routers of OpenShift.
func defaultDomain(p *servers.Platform) string {
	domain := p.DefaultDomain
	if domain == "" && p.Exposure.UsesIngress() && !p.Served.Has(capability.Route) {
		domain = p.Exposure.IngressDomain
	}
	return clusterdomain.Prefer(domain, p.RouterDomain)
}

// generatesDatabase reports whether the operator runs the database of the registry.
func generatesDatabase(m *v1beta1.ModelRegistry) bool {
	p := m.Spec.Postgres
	return p != nil && p.GenerateDeployment != nil && *p.GenerateDeployment
}

// Render returns the objects that a registry would get in an empty cluster with the given APIs, without Secrets, whose data is random.
// Unknown fields are errors.
func Render(settings Settings, served capability.Set, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	m := &v1beta1.ModelRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, m, true); err != nil {
		return nil, fmt.Errorf("decoding ModelRegistry %s: %w", object.GetName(), err)
	}
	platform := &servers.Platform{ModelRegistry: settings.ModelRegistry, Served: served}
	ruleSettings := RuleSettings(settings.ModelRegistry, served)
	m, err := rules.Default(m, ruleSettings)
	if err != nil {
		return nil, fmt.Errorf("defaulting ModelRegistry %s: %w", object.GetName(), err)
	}
	if errs := rules.Validate(m, ruleSettings); len(errs) > 0 {
		return nil, fmt.Errorf("ModelRegistry %s: %w", m.Name, errs.ToAggregate())
	}
	desired, err := buildAll(m, platform)
	if err != nil {
		return nil, fmt.Errorf("building the objects of ModelRegistry %s: %w", m.Name, err)
	}
	return apply.Render(desired, ComponentName, m)
}

func buildAll(m *v1beta1.ModelRegistry, platform *servers.Platform) (apply.Desired, error) {
	in := buildInputs(m, platform)
	if !generatesDatabase(m) {
		return resources.Build(withDefaults(m, platform, credentials{}), in)
	}
	effective := withDefaults(m, platform, requestedCredentials(m))
	desired := apply.Desired{resources.DatabaseClaim(m)}
	if hasBackups(m) {
		desired = append(desired, resources.BackupClaim(m))
	}
	database, err := resources.BuildDatabase(effective, in)
	if err != nil {
		return nil, err
	}
	desired = append(desired, database...)
	if hasBackups(m) {
		desired = append(desired, resources.BuildBackup(effective, in)...)
	}
	server, err := resources.Build(effective, in)
	return append(desired, server...), err
}
