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

// Default returns a copy of the registry with the defaults of admission, for clusters without webhooks. It returns an error only if encoding
// or decoding fails.
func Default(registry *v1beta1.ModelRegistry, s Settings) (*v1beta1.ModelRegistry, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(registry)
	if err != nil {
		return nil, err
	}
	// The registry is also the old object, because it is stored: migrateProxy then removes oauthProxy if both proxies are set.
	setDefaults(object, object, s)
	out := &v1beta1.ModelRegistry{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(object, out)
}

// setDefaults sets the defaults of a decoded object of either version in place. old is nil on create.
func setDefaults(object, old map[string]any, s Settings) {
	isAlpha := object["apiVersion"] == v1alpha1.GroupVersion.String()
	restoreAppliedObjects(object, old)
	spec, proxy := nestedMap(object, "spec"), "kubeRBACProxy"
	database := nestedMap(spec, "postgres")
	if isAlpha {
		proxy, database = "oauthProxy", restoreHiddenFields(object, old).Postgres
	}
	if spec == nil {
		return
	}
	defaultRoute(nestedMap(spec, "rest"), v1beta1.RouteDisabled)
	dropEmptyDatabases(spec, database["generateDeployment"] == true || !isEmpty(database["connectionSecretName"]))
	if isAlpha {
		conversion.ReplaceIstio(spec)
	} else if oauthProxy := nestedMap(spec, "oauthProxy"); oauthProxy != nil {
		migrateProxy(spec, oauthProxy, nestedMap(old, "spec"))
	}
	if s.HasRoutes && spec["oauthProxy"] == nil && spec["kubeRBACProxy"] == nil {
		spec[proxy] = map[string]any{}
	}
	defaultRoute(nestedMap(spec, proxy), v1beta1.RouteEnabled)
	clearDefaults(object, s)
}

// addFinalizer adds the finalizer of the controller to a new object, which saves a write.
func addFinalizer(object map[string]any) {
	metadata := nestedMap(object, "metadata")
	if finalizers, _ := metadata["finalizers"].([]any); metadata != nil && !slices.Contains(finalizers, any(v1beta1.Finalizer)) {
		metadata["finalizers"] = append(finalizers, v1beta1.Finalizer)
	}
}

// restoreAppliedObjects replaces null by {} in applied fields that were objects before. Server-side apply turns an applied {} into null if
// another field manager had set fields of the object, and the schema rejects null.
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
		oldChild := nestedMap(old, name)
		if value, found := object[name]; found && value == nil && oldChild != nil {
			object[name] = map[string]any{}
		}
		if child := nestedMap(object, name); child != nil && oldChild != nil {
			restoreOwned(child, oldChild, nestedMap(fields, key))
		}
	}
}

// restoreHiddenFields returns the hidden fields of a v1alpha1 object, and restores the annotation if a client removed it. If the spec has a
// host, it removes the hidden fields that are invalid with a host, because v1alpha1 cannot unset them.
func restoreHiddenFields(object, old map[string]any) conversion.HiddenFields {
	hidden, err := conversion.HiddenFieldsIn(object)
	if err != nil {
		return conversion.HiddenFields{} // rejected by the validating webhook
	}
	original := hidden.Encode()
	if original == "" {
		if hidden, err = conversion.HiddenFieldsIn(old); err != nil {
			return conversion.HiddenFields{}
		}
	}
	if postgres := nestedMap(nestedMap(object, "spec"), "postgres"); hasHost(postgres) {
		for _, field := range []string{"generateDeployment", "connectionSecretName", "resources", "serverTLS", "majorVersion", "backup"} {
			delete(hidden.Postgres, field)
		}
	}
	if hidden.Encode() != original {
		hidden.SetAnnotation(object)
	}
	return hidden
}

func defaultRoute(server map[string]any, route v1beta1.ServiceRoute) {
	if server != nil && isEmpty(server["serviceRoute"]) {
		server["serviceRoute"] = string(route)
	}
}

// dropEmptyDatabases removes databases without a required host, as sent by clients that encode every field.
func dropEmptyDatabases(spec map[string]any, hostOptional bool) {
	if postgres := nestedMap(spec, "postgres"); postgres != nil && !hasHost(postgres) && !hostOptional {
		delete(spec, "postgres")
	}
	if mysql := nestedMap(spec, "mysql"); mysql != nil && isEmpty(mysql["host"]) {
		delete(spec, "mysql")
	}
}

func hasHost(postgres map[string]any) bool {
	return !isEmpty(postgres["host"]) || !isEmpty(postgres["hostAddress"])
}

// migrateProxy renames oauthProxy to kubeRBACProxy without its image, which contains another program. If both are set, it removes oauthProxy
// if the old object has both, or if a manifest with a migrated oauthProxy is applied again. The schema rejects other objects with both.
func migrateProxy(spec, oauthProxy, old map[string]any) {
	if spec["kubeRBACProxy"] == nil {
		proxy := runtime.DeepCopyJSON(oauthProxy)
		delete(proxy, "image")
		spec["kubeRBACProxy"] = proxy
		delete(spec, "oauthProxy")
		return
	}
	oldProxy, proxy := nestedMap(old, "kubeRBACProxy"), nestedMap(spec, "kubeRBACProxy")
	isReapplied := equality.Semantic.DeepEqual(oldProxy, proxy)
	for key, value := range oauthProxy {
		isReapplied = isReapplied && (key == "image" || equality.Semantic.DeepEqual(value, proxy[key]))
	}
	if oldProxy != nil && (old["oauthProxy"] != nil || isReapplied) {
		delete(spec, "oauthProxy")
	}
}

// clearDefaults removes values that earlier releases stored as defaults, so that the current defaults apply: a default image, and with
// it default resources. Registries with defaults in status.specDefaults are not changed.
func clearDefaults(object map[string]any, s Settings) {
	if defaults := nestedMap(object, "status")["specDefaults"]; !isEmpty(defaults) && defaults != "{}" {
		return
	}
	rest := nestedMap(nestedMap(object, "spec"), "rest")
	image, _ := rest["image"].(string)
	isDefault := func(other string) bool { return parseImage(other) == parseImage(image) }
	if image == "" || !slices.ContainsFunc(s.RESTImages, isDefault) {
		return
	}
	delete(rest, "image")
	if isDefaultResources(nestedMap(rest, "resources")) {
		delete(rest, "resources")
	}
}

// DefaultRESTResources returns the default resources of the server.
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

// nestedMap returns a field that is a map, or nil.
func nestedMap(parent map[string]any, name string) map[string]any {
	child, _ := parent[name].(map[string]any)
	return child
}

// isEmpty reports whether a string is missing or empty.
func isEmpty(value any) bool { return value == nil || value == "" }

// imagePattern matches the characters of an image reference.
var imagePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)

// imageReference is a parsed image reference.
type imageReference struct{ repository, tag, digest string }

// parseImage parses an image reference. A colon before the last slash belongs to the port of its host.
func parseImage(image string) imageReference {
	parsed := imageReference{repository: image}
	parsed.repository, parsed.digest, _ = strings.Cut(parsed.repository, "@")
	if colon := strings.LastIndexByte(parsed.repository, ':'); colon > strings.LastIndexByte(parsed.repository, '/') {
		parsed.repository, parsed.tag = parsed.repository[:colon], parsed.repository[colon+1:]
	}
	if parsed.tag == "" && parsed.digest == "" {
		parsed.tag = "latest"
	}
	return parsed
}
