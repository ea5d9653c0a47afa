package openshift

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

// Names that users and the dashboard of Open Data Hub know.
const (
	// AnnotationTimeout on an InferenceService is that of its Route.
	AnnotationTimeout = "haproxy.router.openshift.io/timeout"
	// LabelInferenceService on a Route names its InferenceService.
	LabelInferenceService = "inferenceservice-name"
	// Finalizer was put on InferenceServices by the former companion. No other controller removes it where that is gone.
	Finalizer = "odh.inferenceservice.finalizers"
	// LabelManaged and LabelDashboard, both "true", make a Secret a data connection; the former also marks the Secret with the
	// storage entries.
	LabelManaged   = "opendatahub.io/managed"
	LabelDashboard = "opendatahub.io/dashboard"
	// AnnotationConnection is the type of a data connection.
	AnnotationConnection = "opendatahub.io/connection-type"
	// BundleConfigMap and BundleKey hold the CAs of the platform in each namespace.
	BundleConfigMap = "odh-trusted-ca-bundle"
	BundleKey       = "odh-ca-bundle.crt"
	// PrometheusBinding lets PrometheusAccount read a namespace; it is also the name of the ClusterRole.
	PrometheusBinding = "prometheus-ns-access"
	PrometheusAccount = "prometheus-custom"

	// AuthorityName is the ConfigMap with the CA of the sidecars, and the BackendTLSPolicy by which Gateways trust it.
	CAObjectName = "model-serving-proxy-ca"

	// kserveBundle is the ConfigMap in which KServe looks for the CAs of the platform.
	kserveBundleConfigMap = "odh-kserve-custom-ca-bundle"
	// formerManager is the name under which the former companion wrote.
	legacyManager   = "manager"
	delegatorSuffix = "-modelmesh-serving-sa-auth-delegator"
	valueTrue       = mm.Yes
)

// BindingName is the ClusterRoleBinding that lets the sidecars of a namespace ask who calls.
func BindingName(namespace string) string { return namespace + delegatorSuffix }

var (
	accountKind   = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	bindingKind   = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	ingressKind   = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	delegatorKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

// place is one object by kind and name.
type objectRef struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// places are all objects that are ever made for a namespace, but for what publishes models and for the storage entries, whose name the
// settings decide.
func possibleObjects(namespace string, served capability.Set) []objectRef {
	in := func(kind schema.GroupVersionKind, name string) objectRef {
		return objectRef{kind, types.NamespacedName{Namespace: namespace, Name: name}}
	}
	all := []objectRef{
		in(accountKind, authproxy.Account), in(bindingKind, PrometheusBinding),
		in(secretKind, authproxy.CookieSecret), in(secretKind, authproxy.TLSSecret),
		in(configMapKind, CAObjectName),
		{delegatorKind, types.NamespacedName{Name: BindingName(namespace)}},
	}
	if served.Has(capability.BackendTLSPolicy) {
		all = append(all, in(capability.BackendTLSPolicy, CAObjectName))
	}
	return all
}

// ours tells whether this component made an object.
func isManaged(o metav1.Object) bool { return apply.IsOurs(o, modelmesh.ComponentName) }

// Inputs are what the objects of one namespace depend on.
type Inputs struct {
	Namespace string
	Settings  meshsettings.Settings
	// Proxy is the sidecar of the runtime pods; nil for none.
	Proxy *authproxy.Proxy
	// Account is the service account of the runtime pods; "" is the one that every namespace has.
	Account string
	// Monitoring is the namespace of the Prometheus that is let in; "" for none.
	Monitoring string
	// Used: there are models, or pods of runtimes. Runtimes: there are runtimes of several models.
	InUse, HasRuntimes bool
	// Cookie is the key of the sidecar's cookies.
	Cookie []byte
	// Certificate is the data of the sidecar's serving certificate where it has to be written, and Storage that of the Secret with
	// the storage entries. nil leaves alone what is there.
	CertificateData, StorageData map[string][]byte
	// Authority is the CA by which Gateways verify the sidecar; nil where they do not.
	CABundle []byte
}

// objects are what a served namespace needs, in the order in which it is made. They have no owner: the namespace takes them along,
// and what is no longer wanted is removed by name. The binding of cluster scope belongs to the Namespace.
func desiredObjects(in Inputs) apply.Desired {
	var desired apply.Desired
	loose := func(config runtime.ApplyConfiguration, adopts func(*unstructured.Unstructured) bool, yields bool) {
		desired = append(desired, apply.Object{Config: config, Ownership: apply.Unowned, AdoptIf: adopts, IgnoreIfForeign: yields})
	}
	if in.HasRuntimes && in.Monitoring != "" {
		loose(buildPrometheusBinding(in), isWrittenByLegacyController, true)
	}
	if !in.InUse {
		return desired
	}
	if in.Account == authproxy.Account {
		loose(corev1ac.ServiceAccount(in.Account, in.Namespace), isWrittenByLegacyController, true)
	}
	if in.StorageData != nil {
		loose(newSecret(in, in.Settings.StorageSecretName).WithLabels(map[string]string{LabelManaged: valueTrue}).WithData(in.StorageData), isLegacyStorageSecret, false)
	}
	if in.Proxy == nil {
		return desired
	}
	if in.Proxy.HasCookie() {
		loose(newSecret(in, authproxy.CookieSecret).WithData(map[string][]byte{oauthproxy.KeyCookie: in.Cookie}), nil, false)
	}
	if in.CertificateData != nil {
		loose(newSecret(in, authproxy.TLSSecret).WithType(corev1.SecretTypeTLS).WithData(in.CertificateData), nil, false)
	}
	if len(in.CABundle) > 0 {
		proxy := resources.Published{
			Service: in.Settings.ServiceName, Port: intstr.FromString(authproxy.PortName), ServerName: proxyName(in.Settings, in.Namespace),
		}
		for _, config := range proxy.Trust(metav1.ObjectMeta{Name: CAObjectName, Namespace: in.Namespace}, in.CABundle) {
			loose(config, nil, false)
		}
	}
	return append(desired, apply.Object{Config: buildDelegatorBinding(in), AdoptIf: isWrittenByLegacyController})
}

func newSecret(in Inputs, name string) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, in.Namespace)
}

// delegator lets the sidecars ask who calls and what he may.
func buildDelegatorBinding(in Inputs) *rbacv1ac.ClusterRoleBindingApplyConfiguration {
	return rbacv1ac.ClusterRoleBinding(BindingName(in.Namespace)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(rbacproxy.DelegatorRole)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(in.Proxy.ServiceAccount()).WithNamespace(in.Namespace))
}

// prometheus lets that of the platform find what is to be scraped.
func buildPrometheusBinding(in Inputs) *rbacv1ac.RoleBindingApplyConfiguration {
	return rbacv1ac.RoleBinding(PrometheusBinding, in.Namespace).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(PrometheusBinding)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(PrometheusAccount).WithNamespace(in.Monitoring))
}

// byFormer recognises what the former companion wrote.
func isWrittenByLegacyController(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == legacyManager && e.Subresource == ""
	})
}

// isStorage recognises the storage entries that the former companion gathered. A data connection may have the name of that Secret.
func isLegacyStorageSecret(live *unstructured.Unstructured) bool {
	return live.GetLabels()[LabelManaged] == valueTrue && live.GetLabels()[LabelDashboard] != valueTrue
}

// Render returns what stands beside the runtimes of a served namespace. Monitoring is the namespace of the
// Prometheus that is let in, "" for none. Secrets, whose content comes from elsewhere or by chance, are only named, in notes.
func Render(namespace string, s meshsettings.Settings, served capability.Set, monitoring string) ([]*unstructured.Unstructured, []string, error) {
	in := Inputs{
		Namespace: namespace, Settings: s, InUse: true, HasRuntimes: true, Monitoring: monitoring,
		Account: authproxy.AccountOf(s, served), Proxy: authproxy.Decide(s, namespace, served),
	}
	owner := &corev1.Namespace{}
	owner.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	owner.SetName(namespace)
	rendered, err := apply.Render(desiredObjects(in), modelmesh.ComponentName, owner)
	var notes []string
	for _, o := range rendered {
		if o.GetKind() == secretKind.Kind {
			unstructured.RemoveNestedField(o.Object, "data")
			notes = append(notes, "the data of Secret "+o.GetName()+" is made at random in the cluster")
		}
	}
	if in.Proxy != nil && in.Proxy.NeedsCertificate() {
		notes = append(notes, "Secret "+authproxy.TLSSecret+" with the certificate of the proxy is made in the cluster")
	}
	return rendered, notes, err
}
