package raycluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/raycluster"
)

// RenderInputs are the inputs of Render in addition to the cluster.
type RenderInputs struct {
	Settings config.RayCluster
	Served   capability.Set
	// Domain is the ingress domain of the Kubernetes cluster; "" if unknown.
	Domain string
	// Version is the value of the version annotation of new clusters.
	Version string
	// KubeRayNamespaces are the namespaces of KubeRay. Those in Settings have precedence.
	KubeRayNamespaces []string
}

// Render returns a new RayCluster as the webhooks admit it, with the finalizer if it needs one, followed by its child objects. It assumes
// that no object exists yet: objects that depend on an issued certificate are missing, and Secrets with random data (certificates, cookies)
// have no data. The notes name these Secrets.
func Render(in RenderInputs, object *unstructured.Unstructured) (objects []*unstructured.Unstructured, notes []string, err error) {
	admitted, notes, err := webhook.Admit(webhook.SettingsOf(in.Settings, in.Served, in.Domain, in.Version), object.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("admission of RayCluster %s: %w", object.GetName(), err)
	}
	cluster := &unstructured.Unstructured{Object: admitted}
	c := raycluster.View(admitted)
	inputs := in.inputs(c)
	if !inputs.Mode.Active() {
		return []*unstructured.Unstructured{cluster}, append(notes, "no objects are created for RayCluster "+c.Name()+": "+inputs.Mode.Skip), nil
	}
	if inputs.Mode.ByKubeRay {
		return []*unstructured.Unstructured{cluster}, append(notes, "no objects are created for RayCluster "+c.Name()+": the KubeRay of the platform secures it"), nil
	}
	plan := resources.Build(c, inputs)
	desired := slices.Concat(plan.Policies, plan.SidecarObjects)
	if plan.Binding != nil && !plan.RetainsBinding {
		desired = append(desired, *plan.Binding)
		cluster.SetFinalizers(append(cluster.GetFinalizers(), raycluster.Finalizer))
	}
	issued, secrets := certificates.Render(c, certificateInputs(inputs, c))
	desired = append(append(desired, issued...), plan.Exposure...)
	children, err := apply.Render(desired, ComponentName, cluster)
	if err != nil {
		return nil, nil, err
	}
	if inputs.Mode.Auth == raycluster.AuthOAuth && !c.Suspended() {
		secrets = append(secrets, c.Names().CookieSecret)
	}
	if len(secrets) > 0 {
		notes = append(notes, "the data of these Secrets is generated in the cluster: "+strings.Join(secrets, ", "))
	}
	if inputs.MissingDomain(c) {
		notes = append(notes, "the dashboard is not published: the domain of the cluster is unknown; set raycluster.ingressDomain")
	}
	return append([]*unstructured.Unstructured{cluster}, children...), notes, nil
}

// inputs returns the inputs of the first reconcile.
func (in RenderInputs) inputs(c raycluster.Cluster) resources.Inputs {
	out := newInputs(c, in.Settings, in.Served, in.Domain)
	if out.KubeRay = in.Settings.KubeRayNamespaces; len(out.KubeRay) == 0 {
		out.KubeRay = in.KubeRayNamespaces
	}
	return out
}
