package conversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// Fields of the two specs that conversion knows.
const (
	fieldGRPC          = "grpc"
	fieldPostgres      = "postgres"
	fieldDatabase      = "database"
	fieldOAuthProxy    = "oauthProxy"
	fieldKubeRBACProxy = "kubeRBACProxy"
	fieldIstio         = "istio"
	fieldReplicas      = "replicas"
)

// PostgresOnlyInV1beta1 lists the fields of spec.postgres that v1alpha1 does not have.
var PostgresOnlyInV1beta1 = []string{
	"generateDeployment", "retentionPolicy", "storage", "image",
	"connectionSecretName", "resources", "serverTLS", "majorVersion", "backup",
}

// OnlyInV1beta1 lists the fields of spec that v1alpha1 does not have.
var OnlyInV1beta1 = []string{
	"replicas", "imagePullSecrets", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName", "volumes", "volumeMounts",
}

// Convert returns the object in the wanted version, one of the two apiVersions of ModelRegistry. The object given is not
// changed; the result may share parts with it. It returns an error for everything that is no ModelRegistry.
func Convert(object map[string]any, wanted string) (map[string]any, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if kind != v1beta1.Kind || !known(apiVersion) {
		return nil, fmt.Errorf("%s %s is not of type v1beta1.ModelRegistry", apiVersion, kind)
	}
	if !known(wanted) {
		return nil, fmt.Errorf("%s is not of type v1beta1.ModelRegistry: it can be shown as %s and %s", wanted, v1beta1.GroupVersion, v1alpha1.GroupVersion)
	}
	if apiVersion == wanted {
		return object, nil
	}
	converted := runtime.DeepCopyJSON(object)
	converted["apiVersion"] = wanted
	if wanted == v1beta1.GroupVersion.String() {
		toV1beta1(converted)
	} else {
		toV1alpha1(converted)
	}
	return converted, nil
}

func known(apiVersion string) bool {
	return apiVersion == v1beta1.GroupVersion.String() || apiVersion == v1alpha1.GroupVersion.String()
}

// toV1beta1 changes a v1alpha1 object in place.
func toV1beta1(object map[string]any) {
	kept := takeKept(object)
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	ReplaceIstio(spec)
	restored := runtime.DeepCopyJSON(spec)
	kept.restore(restored)
	if decodes(restored) != nil {
		return // an annotation that was forged where no webhook looked; one such object must not spoil a list of all
	}
	object["spec"] = restored
}

// decodes returns an error when a spec has values of types that v1beta1 does not have.
func decodes(spec map[string]any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": spec}, &v1beta1.ModelRegistry{})
}

// Check returns an error when the annotation of a v1alpha1 object cannot be read, or does not fit it: what it keeps would be
// lost.
func Check(object map[string]any) error {
	kept, err := KeptIn(object)
	if err != nil {
		return err
	}
	spec, ok := object["spec"].(map[string]any)
	if !ok || object["apiVersion"] != v1alpha1.GroupVersion.String() {
		return nil
	}
	restored := runtime.DeepCopyJSON(spec)
	ReplaceIstio(restored)
	kept.restore(restored)
	return decodes(restored)
}

// toV1alpha1 changes a v1beta1 object in place.
func toV1alpha1(object map[string]any) {
	takeKept(object) // no stored object has it, so what a user put there means nothing
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	shown := runtime.DeepCopyJSON(spec)
	kept := hide(shown)
	object["spec"] = shown
	kept.put(object)
}
