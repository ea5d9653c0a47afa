package modelcatalog

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/huggingface"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// Render returns the objects that a Catalog would get in an empty cluster with the given APIs. domain is the domain of its routers, or "". The
// notes list what is omitted. Unknown fields are errors.
func Render(settings Settings, served capability.Set, domain string, object *unstructured.Unstructured) (objects []*unstructured.Unstructured, notes []string, err error) {
	c := &aihubv1alpha1.Catalog{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, c, true); err != nil {
		return nil, nil, fmt.Errorf("decoding Catalog %s: %w", object.GetName(), err)
	}
	if problem := inactiveState(c, []aihubv1alpha1.Catalog{*c}, settings.Namespace); problem.Reason != "" {
		return nil, nil, fmt.Errorf("rendering Catalog %s: %s", c.Name, problem.Message)
	}
	if err := resources.CheckImages(c); err != nil {
		return nil, nil, fmt.Errorf("rendering Catalog %s: %w", c.Name, err)
	}
	in := buildInputs(&servers.Platform{ModelRegistry: settings.ModelRegistry, Served: served, RouterDomain: domain})
	var desired apply.Desired
	for _, m := range resources.UserSources {
		desired = append(desired, apply.Object{Config: resources.UserSourcesConfigMap(c, m.Name, m.Content), Ownership: apply.Unowned})
	}
	if resources.OwnsDatabase(c, in) {
		desired.Add(databaseSecret(c, corev1.SecretTypeOpaque, nil))
		notes = append(notes, "the data of Secret "+resources.DatabaseName+" is generated in the cluster")
	}
	if issuesCertificate(c, in) {
		notes = append(notes, "Secret "+resources.ServingSecret(c)+" with the certificate of the proxy is generated in the cluster")
	}
	if served.Has(capability.PlatformAuth) {
		notes = append(notes, "the groups of administrators come from the Auth of the platform; no binding is shown for them")
	}
	if served.Has(capability.OpenShiftProxy) && !resources.HasEgressProxy(c) {
		notes = append(notes, "the egress proxy of the cluster, which the server uses, is not shown")
	}
	notes = append(notes, "keys for Hugging Face, from Secrets with the label "+huggingface.Label+", are not shown")
	objects, err = apply.Render(append(desired, resources.Build(c, in)...), ComponentName, c)
	return objects, notes, err
}
