package modelcatalog

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// defaultedFields are the fields that the API server sets if they are omitted, with their defaults; "" for any value.
var defaultedFields = map[string]string{
	"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
	"schedulerName": "default-scheduler", "terminationGracePeriodSeconds": "30", "defaultMode": "420", "imagePullPolicy": "IfNotPresent",
	"progressDeadlineSeconds": "600", "clusterIP": "", "clusterIPs": "", "ipFamilies": "", "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
	"failureThreshold": "3", "successThreshold": "1", "periodSeconds": "10", "sessionAffinity": "None", "targetPort": "", "maxSurge": "25%",
	"maxUnavailable": "25%", "type": "RollingUpdate", "serviceAccount": "", "resources": "{}", "securityContext": "{}", "capabilities": "{}",
}

// intendedDifferences are the intended differences from the recording, by object and prefix of the path.
var intendedDifferences = map[string]string{
	"* metadata.ownerReferences":                                                              "the Catalog is the owner",
	"* metadata.labels":                                                                       "more labels on all objects",
	"ConfigMap/default-catalog-sources data":                                                  "agents, runtimes, more labels and other texts",
	"ConfigMap/model-catalog-kube-rbac-proxy-config data":                                     "the same rule in another encoding",
	"Service/model-catalog metadata.annotations.routing":                                      "[D22] no address without a Route",
	"Deployment/model-catalog spec.template.spec.containers.catalog.args":                     "the sources of agents and runtimes",
	"Deployment/model-catalog spec.template.spec.containers.catalog.readinessProbe":           "the readiness probe calls the server",
	"Deployment/model-catalog-postgres spec.template.spec.containers.postgresql.lifecycle":    "[W10] PostgreSQL stops without waiting for clients",
	"Deployment/model-catalog-postgres spec.template.spec.terminationGracePeriodSeconds":      "PostgreSQL has more time to stop",
	"Deployment/model-catalog-postgres spec.template.spec.volumes":                            "an emptyDir instead of a claim",
	"Deployment/model-catalog-postgres spec.template.spec.containers.postgresql.volumeMounts": "the data directory of the image",
	"Deployment/model-catalog-postgres spec.template.spec.containers.postgresql.env.PGDATA":   "PGDATA is not set",
	"Role/model-catalog-admin rules":                                                          "[S5] no Secrets, and ConfigMaps by name",
	"Role/model-catalog-admin metadata.annotations":                                           "[S5] describes the narrower rules",
}

// notBuilt are recorded objects that Build does not return or that are no longer created.
var notBuilt = []string{
	"ConfigMap/mcp-catalog-sources", "ConfigMap/model-catalog-sources", "Secret/model-catalog-postgres", "PersistentVolumeClaim/model-catalog-postgres",
}

// leaves adds the values of a tree by path. The path identifies list elements by name or index.
func leaves(path string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[path] = "{}"
		}
		for key, value := range v {
			leaves(strings.TrimPrefix(path+"."+key, "."), value, into)
		}
	case []any:
		if len(v) == 0 {
			into[path] = "[]"
		}
		for i, value := range v {
			key := fmt.Sprint(i)
			if fields, ok := value.(map[string]any); ok && fields["name"] != nil {
				key = fmt.Sprint(fields["name"])
			}
			leaves(path+"."+key, value, into)
		}
	default:
		into[path] = fmt.Sprint(v)
	}
}

func isIntended(object, path string) bool {
	for key := range intendedDifferences {
		differingObject, prefix, _ := strings.Cut(key, " ")
		if (differingObject == "*" || differingObject == object) && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// isDefault reports whether the API server sets the value of a field that is omitted.
func isDefault(path, value string) bool {
	return slices.ContainsFunc(strings.Split(path, "."), func(part string) bool {
		defaultValue, found := defaultedFields[part]
		return found && (defaultValue == "" || defaultValue == value)
	})
}

func keyOf(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// The objects are those of the legacy operator on plain Kubernetes, except for intended differences.
func TestRecordedObjects(t *testing.T) {
	recorded, err := framework.ReadObjects(filepath.Join("testdata", "recorded", "plain.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects := buildObjects(t, newCatalog(), kubernetesInputs())
	for _, o := range recorded {
		if slices.Contains(notBuilt, keyOf(o)) {
			continue
		}
		built := findObject(objects, o.GetKind(), o.GetName())
		if built == nil {
			t.Errorf("%s is recorded, but was not built", keyOf(o))
			continue
		}
		want, got := map[string]string{}, map[string]string{}
		leaves("", framework.Normalize(o).Object, want)
		leaves("", framework.Normalize(built).Object, got)
		for path, value := range want {
			if _, isBuilt := got[path]; got[path] != value && !isIntended(keyOf(o), path) && (isBuilt || !isDefault(path, value)) {
				t.Errorf("%s %s: recorded %q, built %q", keyOf(o), path, value, got[path])
			}
		}
	}
}

// New objects and fields are only NetworkPolicies, those for restricted Pod Security, the token of the ServiceAccount, the startup probe,
// the sources of agents and runtimes, and intended differences.
func TestObjectsNotInTheRecording(t *testing.T) {
	recorded, err := framework.ReadObjects(filepath.Join("testdata", "recorded", "plain.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	newFields := []string{"securityContext", "startupProbe", "automountServiceAccountToken", "user-agent-sources", "user-serving-runtime-sources"}
	for _, o := range buildObjects(t, newCatalog(), kubernetesInputs()) {
		recordedObject := findObject(recorded, o.GetKind(), o.GetName())
		if recordedObject == nil {
			if o.GetKind() != "NetworkPolicy" {
				t.Errorf("%s was built, but is not recorded", keyOf(o))
			}
			continue
		}
		recordedFields, builtFields := map[string]string{}, map[string]string{}
		leaves("", framework.Normalize(recordedObject).Object, recordedFields)
		leaves("", framework.Normalize(o).Object, builtFields)
		for path, value := range builtFields {
			_, isRecorded := recordedFields[path]
			isNew := slices.ContainsFunc(newFields, func(part string) bool { return strings.Contains(path, part) })
			if !isRecorded && !isNew && !isIntended(keyOf(o), path) {
				t.Errorf("%s %s: %q is not recorded", keyOf(o), path, value)
			}
		}
	}
}
