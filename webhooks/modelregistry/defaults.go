package modelregistry

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

// Default returns a copy of the registry as admission would store it. Call it where objects did not come through webhooks.
// It returns an error only for what cannot be encoded.
func Default(registry *v1beta1.ModelRegistry, s Settings) (*v1beta1.ModelRegistry, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(registry)
	if err != nil {
		return nil, err
	}
	// What is not said cannot be a proxy of both names that a user asked for: only old objects get here with both.
	setDefaults(object, object, s)
	out := &v1beta1.ModelRegistry{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(object, out)
}

// setDefaults changes a decoded object of either version in place; old is the one before it, nil for a new one.
func setDefaults(object, old map[string]any, s Settings) {
	alpha := object["apiVersion"] == v1alpha1.GroupVersion.String()
	restoreAppliedObjects(object, old)
	spec, proxy := nestedMap(object, "spec"), "kubeRBACProxy"
	database := nestedMap(spec, "postgres")
	if alpha {
		proxy, database = "oauthProxy", restoreHiddenFields(object, old).Postgres
	}
	if spec == nil {
		return
	}
	defaultRoute(nestedMap(spec, "rest"), v1beta1.RouteDisabled)
	dropEmptyDatabases(spec, needsNoHost(database))
	if alpha {
		conversion.ReplaceIstio(spec)
	} else if oauth := nestedMap(spec, "oauthProxy"); oauth != nil {
		migrateProxy(spec, oauth, nestedMap(old, "spec"))
	}
	if s.OpenShift && spec["oauthProxy"] == nil && spec["kubeRBACProxy"] == nil {
		spec[proxy] = map[string]any{}
	}
	defaultRoute(nestedMap(spec, proxy), v1beta1.RouteEnabled)
	clearDefaults(object, s)
}

// restoreApplied gives objects back of which server-side apply leaves a null, which the schema refuses: those that are applied as {}
// when another manager, or the same one by client-side apply, had set what is in them. A null that a user wrote stays, and is refused.
func restoreAppliedObjects(object, old map[string]any) {
	managers, _ := nestedMap(object, "metadata")["managedFields"].([]any)
	for _, manager := range managers {
		if entry, _ := manager.(map[string]any); entry["operation"] == string(metav1.ManagedFieldsOperationApply) {
			restoreOwned(object, old, nestedMap(entry, "fieldsV1"))
		}
	}
}

func restoreOwned(object, old, fields map[string]any) {
	for key := range fields {
		name := strings.TrimPrefix(key, "f:")
		before := nestedMap(old, name)
		if value, found := object[name]; found && value == nil && before != nil {
			object[name] = map[string]any{}
		}
		if child := nestedMap(object, name); child != nil && before != nil {
			restoreOwned(child, before, nestedMap(fields, key))
		}
	}
}

// carryKept gives a v1alpha1 object back what only v1beta1 can say about it, where a client that knows nothing of it left it
// out, and returns it. Who names a server wants neither a generated database nor one that a Secret describes any more, for which
// v1alpha1 has no other word.
func restoreHiddenFields(object, old map[string]any) conversion.HiddenFields {
	kept, err := conversion.HiddenFieldsIn(object)
	if err != nil {
		return conversion.HiddenFields{} // refused later, by the validating webhook
	}
	text := kept.Encode()
	if text == "" {
		if kept, err = conversion.HiddenFieldsIn(old); err != nil {
			return conversion.HiddenFields{}
		}
	}
	if postgres := nestedMap(nestedMap(object, "spec"), "postgres"); hasServer(postgres) {
		for _, other := range []string{"generateDeployment", "connectionSecretName", "resources", "serverTLS", "majorVersion", "backup"} {
			delete(kept.Postgres, other)
		}
	}
	if kept.Encode() != text {
		kept.SetAnnotation(object)
	}
	return kept
}

func defaultRoute(from map[string]any, route v1beta1.ServiceRoute) {
	if from != nil && isEmpty(from["serviceRoute"]) {
		from["serviceRoute"] = string(route)
	}
}

// dropEmptyDatabases removes databases that name no server, as clients send them that write out every field.
func dropEmptyDatabases(spec map[string]any, serverless bool) {
	if postgres := nestedMap(spec, "postgres"); postgres != nil && !hasServer(postgres) && !serverless {
		delete(spec, "postgres")
	}
	if mysql := nestedMap(spec, "mysql"); mysql != nil && isEmpty(mysql["host"]) {
		delete(spec, "mysql")
	}
}

// serverless reports whether a database needs no server by name: it is generated, or a Secret describes it.
func needsNoHost(postgres map[string]any) bool {
	return postgres["generateDeployment"] == true || !isEmpty(postgres["connectionSecretName"])
}

func hasServer(postgres map[string]any) bool {
	return !isEmpty(postgres["host"]) || !isEmpty(postgres["hostAddress"])
}

// moveProxy gives oauthProxy its present name. Its image is that of another program and stays behind. An old object that has
// both loses the older one, as does one that repeats what was moved, as clients do that apply a file again; others are refused by the schema.
func migrateProxy(spec, oauth, old map[string]any) {
	if spec["kubeRBACProxy"] == nil {
		proxy := runtime.DeepCopyJSON(oauth)
		delete(proxy, "image")
		spec["kubeRBACProxy"] = proxy
		delete(spec, "oauthProxy")
		return
	}
	moved, now := nestedMap(old, "kubeRBACProxy"), nestedMap(spec, "kubeRBACProxy")
	repeated := equality.Semantic.DeepEqual(moved, now)
	for key, value := range oauth {
		repeated = repeated && (key == "image" || equality.Semantic.DeepEqual(value, now[key]))
	}
	if moved != nil && (old["oauthProxy"] != nil || repeated) {
		delete(spec, "oauthProxy")
	}
}

// clearDefaults removes what an older release wrote into specs as the default of its day, so that the registry follows the
// platform again: an image that is exactly a known one, and with it resources that are exactly the default ones. It looks at
// registries only that were never deployed with defaults of their own.
func clearDefaults(object map[string]any, s Settings) {
	if defaults := nestedMap(object, "status")["specDefaults"]; !isEmpty(defaults) && defaults != "{}" {
		return
	}
	rest := nestedMap(nestedMap(object, "spec"), "rest")
	image, _ := rest["image"].(string)
	if image == "" || !containsImage(image, s.RESTImages) {
		return
	}
	delete(rest, "image")
	if isDefaultResources(nestedMap(rest, "resources")) {
		delete(rest, "resources")
	}
}

// DefaultRESTResources are those of a server that names none.
func DefaultRESTResources() corev1.ResourceRequirements {
	memory := resource.MustParse("256Mi")
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: memory},
	}
}

func isDefaultResources(resources map[string]any) bool {
	if resources == nil {
		return false
	}
	var typed corev1.ResourceRequirements
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(resources, &typed); err != nil {
		return false
	}
	return equality.Semantic.DeepEqual(typed, DefaultRESTResources())
}

// block returns an object below another, nil when there is none.
func nestedMap(parent map[string]any, name string) map[string]any {
	child, _ := parent[name].(map[string]any)
	return child
}

// empty reports whether a text is missing or empty.
func isEmpty(value any) bool { return value == nil || value == "" }

// imagePattern is what an image may be written with. Whether it exists only the kubelet knows.
var imagePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)

// reference is an image reference, taken apart.
type imageReference struct{ repository, tag, digest string }

// parseImage takes an image reference apart. A colon before the last slash belongs to the port of a registry.
func parseImage(image string) imageReference {
	r := imageReference{repository: image}
	r.repository, r.digest, _ = strings.Cut(r.repository, "@")
	if colon := strings.LastIndexByte(r.repository, ':'); colon > strings.LastIndexByte(r.repository, '/') {
		r.repository, r.tag = r.repository[:colon], r.repository[colon+1:]
	}
	if r.tag == "" && r.digest == "" {
		r.tag = "latest"
	}
	return r
}

// isOneOf reports whether an image is among others, however it is written.
func containsImage(image string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool { return parseImage(other) == parseImage(image) })
}
