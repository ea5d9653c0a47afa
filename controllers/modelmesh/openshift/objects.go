package openshift

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

// Names that users and the dashboard of Open Data Hub depend on.
const (
	// AnnotationTimeout on an InferenceService sets the timeout of its Route.
	AnnotationTimeout = "haproxy.router.openshift.io/timeout"
	// LabelInferenceService on a Route, HTTPRoute or Ingress is the name of its InferenceService.
	LabelInferenceService = "inferenceservice-name"
	// LabelManaged and LabelDashboard, both "true", select the Secrets that are data connections. LabelManaged alone selects the Secret
	// with the storage entries.
	LabelManaged   = "opendatahub.io/managed"
	LabelDashboard = "opendatahub.io/dashboard"
	// AnnotationConnection is the type of a data connection.
	AnnotationConnection = "opendatahub.io/connection-type"
	// BundleConfigMap and BundleKey locate the CA bundle of the platform in each namespace.
	BundleConfigMap = "odh-trusted-ca-bundle"
	BundleKey       = "odh-ca-bundle.crt"
	// PrometheusBinding grants PrometheusAccount read access to a namespace. The ClusterRole has the same name.
	PrometheusBinding = "prometheus-ns-access"
	PrometheusAccount = "prometheus-custom"

	// CAObjectName is the name of the ConfigMap with the CA of the sidecars and of the BackendTLSPolicy that refers to it.
	CAObjectName = "model-serving-proxy-ca"

	// kserveBundleConfigMap is the ConfigMap from which KServe reads the CA bundle of the platform.
	kserveBundleConfigMap = "odh-kserve-custom-ca-bundle"
	delegatorSuffix       = "-modelmesh-serving-sa-auth-delegator"
	valueTrue             = pkgmodelmesh.Enabled
)

// BindingName returns the name of the ClusterRoleBinding that allows the sidecars of a namespace to authenticate requests.
func BindingName(namespace string) string { return namespace + delegatorSuffix }

var (
	accountKind   = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	bindingKind   = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	ingressKind   = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	delegatorKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

// possibleObjects returns the keys of the objects that namespaceReconciler can create for a namespace, except the storage Secret: its
// name depends on the settings.
func possibleObjects(namespace string, served capability.Set) []apply.Key {
	keyOf := func(kind schema.GroupVersionKind, name string) apply.Key {
		return apply.NewKey(kind, namespace, name)
	}
	keys := []apply.Key{
		keyOf(accountKind, authproxy.DefaultServiceAccount), keyOf(bindingKind, PrometheusBinding),
		keyOf(secretKind, authproxy.CookieSecret), keyOf(secretKind, authproxy.TLSSecret),
		keyOf(configMapKind, CAObjectName),
		apply.NewKey(delegatorKind, "", BindingName(namespace)),
	}
	if served.Has(capability.BackendTLSPolicy) {
		keys = append(keys, keyOf(capability.BackendTLSPolicy, CAObjectName))
	}
	return keys
}

// isManaged reports whether an object has the labels of this component.
func isManaged(o metav1.Object) bool { return apply.HasComponentLabels(o, modelmesh.ComponentName) }

// Inputs determine the desired objects of one namespace.
type Inputs struct {
	Namespace string
	Settings  meshsettings.Settings
	// Proxy is the sidecar of the runtime pods; nil for none.
	Proxy *authproxy.Proxy
	// Account is the ServiceAccount of the runtime pods; "" for the ServiceAccount "default".
	Account string
	// MonitoringNamespace is the namespace of the Prometheus that may read the namespace; "" for none.
	MonitoringNamespace string
	// InUse is true if there are models or runtime pods. HasRuntimes is true if there are Deployments of runtimes.
	InUse, HasRuntimes bool
	// Cookie is the cookie key of the sidecar.
	Cookie []byte
	// StorageData is the data of the storage Secret; nil if the Secret is not applied.
	StorageData map[string][]byte
	// CABundle contains the CAs with which Gateways verify the sidecar; nil if they do not verify it.
	CABundle []byte
}

// desiredObjects returns the objects to apply in an enabled namespace. The namespaced objects have no owner: they are deleted with the
// namespace, or when they are obsolete. The owner of the ClusterRoleBinding is the Namespace.
func desiredObjects(in Inputs) apply.Desired {
	var desired apply.Desired
	addUnowned := func(config runtime.ApplyConfiguration, ignoreIfForeign bool) {
		desired = append(desired, apply.Object{Config: config, Ownership: apply.Unowned, IgnoreIfForeign: ignoreIfForeign})
	}
	if in.HasRuntimes && in.MonitoringNamespace != "" {
		addUnowned(buildPrometheusBinding(in), true)
	}
	if !in.InUse {
		return desired
	}
	if in.Account == authproxy.DefaultServiceAccount {
		addUnowned(corev1ac.ServiceAccount(in.Account, in.Namespace), true)
	}
	if in.StorageData != nil {
		secret := corev1ac.Secret(in.Settings.StorageSecretName, in.Namespace).WithLabels(map[string]string{LabelManaged: valueTrue}).WithData(in.StorageData)
		desired = append(desired, apply.Object{Config: secret, Ownership: apply.Unowned, AdoptIf: isStorageSecret})
	}
	if in.Proxy == nil {
		return desired
	}
	if in.Proxy.NeedsCookieSecret() {
		addUnowned(corev1ac.Secret(authproxy.CookieSecret, in.Namespace).WithData(map[string][]byte{oauthproxy.KeyCookie: in.Cookie}), false)
	}
	if len(in.CABundle) > 0 {
		proxy := resources.Published{
			Service: in.Settings.ServiceName, Port: intstr.FromString(authproxy.PortName), ServerName: proxyName(in.Settings, in.Namespace),
		}
		for _, config := range proxy.BackendTLS(metav1.ObjectMeta{Name: CAObjectName, Namespace: in.Namespace}, in.CABundle) {
			addUnowned(config, false)
		}
	}
	return append(desired, apply.Object{Config: buildDelegatorBinding(in)})
}

// buildDelegatorBinding builds the ClusterRoleBinding that allows the sidecars to create TokenReviews and SubjectAccessReviews.
func buildDelegatorBinding(in Inputs) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return rbacv1ac.ClusterRoleBinding(BindingName(in.Namespace)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(in.Proxy.ServiceAccountName()).WithNamespace(in.Namespace))
}

// buildPrometheusBinding builds the RoleBinding that allows the Prometheus of the platform to discover its targets.
func buildPrometheusBinding(in Inputs) *rbacv1ac.RoleBindingApplyConfiguration {
	return rbacv1ac.RoleBinding(PrometheusBinding, in.Namespace).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(PrometheusBinding)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(PrometheusAccount).WithNamespace(in.MonitoringNamespace))
}

// isStorageSecret reports whether an object is a Secret that a user or the legacy controller labelled as storage Secret, and not a data
// connection of the same name.
func isStorageSecret(live *unstructured.Unstructured) bool {
	return live.GetLabels()[LabelManaged] == valueTrue && live.GetLabels()[LabelDashboard] != valueTrue
}

// Render returns the objects that the settings of an enabled namespace require, other than those of runtimes. monitoring is the namespace
// of Prometheus, "" for none. Render omits the data of Secrets; the notes describe their source.
func Render(namespace string, s meshsettings.Settings, served capability.Set, monitoring string) ([]*unstructured.Unstructured, []string, error) {
	in := Inputs{
		Namespace: namespace, Settings: s, InUse: true, HasRuntimes: true, MonitoringNamespace: monitoring,
		Account: authproxy.ServiceAccountName(s, served), Proxy: authproxy.Decide(s, namespace, served),
	}
	owner := &corev1.Namespace{}
	owner.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	owner.SetName(namespace)
	rendered, err := apply.Render(desiredObjects(in), modelmesh.ComponentName, owner)
	var notes []string
	for _, o := range rendered {
		if o.GetKind() == secretKind.Kind {
			unstructured.RemoveNestedField(o.Object, "data")
			notes = append(notes, "the data of Secret "+o.GetName()+" is generated in the cluster")
		}
	}
	if in.Proxy != nil && in.Proxy.NeedsCertificate() {
		notes = append(notes, "Secret "+authproxy.TLSSecret+" with the certificate of the proxy is created in the cluster")
	}
	return rendered, notes, err
}
