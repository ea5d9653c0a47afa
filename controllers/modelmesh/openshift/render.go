package openshift

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// Render returns what stands beside the runtimes of a served namespace. Monitoring is the namespace of the
// Prometheus that is let in, "" for none. Secrets, whose content comes from elsewhere or by chance, are only named, in notes.
func Render(namespace string, s meshsettings.Settings, served capability.Set, monitoring string) ([]*unstructured.Unstructured, []string, error) {
	in := Inputs{
		Namespace: namespace, Settings: s, Used: true, Runtimes: true, Monitoring: monitoring,
		Account: authproxy.AccountOf(s, served), Proxy: authproxy.Decide(s, namespace, served),
	}
	owner := &corev1.Namespace{}
	owner.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	owner.SetName(namespace)
	rendered, err := apply.Render(objects(in), modelmesh.ComponentName, owner)
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
