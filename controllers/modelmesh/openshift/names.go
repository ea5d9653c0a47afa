package openshift

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// Names that users and the dashboard of Open Data Hub know.
const (
	// AnnotationRoute on a runtime publishes its models, AnnotationAuth has their callers checked. Their value is "true".
	AnnotationRoute = "enable-route"
	AnnotationAuth  = "enable-auth"
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
	AuthorityName = "model-serving-proxy-ca"

	// kserveBundle is the ConfigMap in which KServe looks for the CAs of the platform.
	kserveBundle = "odh-kserve-custom-ca-bundle"
	// formerManager is the name under which the former companion wrote.
	formerManager = "manager"
	delegatorTail = "-modelmesh-serving-sa-auth-delegator"
	yes           = "true"
)

// BindingName is the ClusterRoleBinding that lets the sidecars of a namespace ask who calls.
func BindingName(namespace string) string { return namespace + delegatorTail }

var (
	accountKind   = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	bindingKind   = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	ingressKind   = networkingv1.SchemeGroupVersion.WithKind("Ingress")
	delegatorKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

// place is one object by kind and name.
type place struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// places are all objects that are ever made for a namespace, but for what publishes models and for the storage entries, whose name the
// settings decide.
func places(namespace string, served capability.Set) []place {
	in := func(kind schema.GroupVersionKind, name string) place {
		return place{kind, types.NamespacedName{Namespace: namespace, Name: name}}
	}
	all := []place{
		in(accountKind, authproxy.Account), in(bindingKind, PrometheusBinding),
		in(secretKind, authproxy.CookieSecret), in(secretKind, authproxy.TLSSecret),
		in(configMapKind, AuthorityName),
		{delegatorKind, types.NamespacedName{Name: BindingName(namespace)}},
	}
	if served.Has(capability.BackendTLSPolicy) {
		all = append(all, in(capability.BackendTLSPolicy, AuthorityName))
	}
	return all
}

// ours tells whether this component made an object.
func ours(o metav1.Object) bool { return apply.IsOurs(o, modelmesh.ComponentName) }
