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

// defaultedFields are fields that the API server defaults and builders omit.
var defaultedFields = []string{
	"terminationMessagePath", "terminationMessagePolicy", "dnsPolicy", "restartPolicy", "schedulerName", "terminationGracePeriodSeconds",
	"defaultMode", "imagePullPolicy", "progressDeadlineSeconds", "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy",
	"failureThreshold", "successThreshold", "periodSeconds", "sessionAffinity", "targetPort", "rollingUpdate", "serviceAccount", "strategy",
}

// intendedDifferences are the intended differences from the recording, by object and prefix of the path.
var intendedDifferences = map[string]string{
	"* metadata.ownerReferences":                                                              "the Catalog is the owner",
	"* metadata.labels":                                                                       "more labels on all objects",
	"ConfigMap/default-catalog-sources data":                                                  "agents, runtimes, more labels and other texts",
	"ConfigMap/model-catalog-kube-rbac-proxy-config data":                                     "the same rule in another encoding",
	"Service/model-catalog metadata.annotations.routing":                                      "[D22] no address without a Route",
	"Deployment/model-catalog spec.template.spec.containers.catalog.args":                     "the sources of agents and runtimes",
	"Deployment/model-catalog spec.template.spec.containers.catalog.readin":                   "the readiness probe calls the server",
	"Deployment/model-catalog-postgres spec.template.spec.containers.postgresql.lifecycle":    "[W10] PostgreSQL stops without waiting for clients",
	"Deployment/model-catalog-postgres spec.template.spec.volumes":                            "an emptyDir instead of a claim",
	"Deployment/model-catalog-postgres spec.template.spec.containers.postgresql.volumeMounts": "the data directory of the image",
	"Deployment/model-catalog-postgres spec.template.spec.containers.postgresql.env.PGDATA":   "three variables instead of PGDATA",
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
		for key, value := range v {
			leaves(strings.TrimPrefix(path+"."+key, "."), value, into)
		}
	case []any:
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
	return slices.ContainsFunc(strings.Split(path, "."), func(part string) bool { return slices.Contains(defaultedFields, part) })
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
			if got[path] != value && !isIntended(keyOf(o), path) {
				t.Errorf("%s %s: recorded %q, built %q", keyOf(o), path, value, got[path])
			}
		}
	}
}

// New objects and fields are only those for restricted Pod Security, startup time, sources of agents and runtimes, and NetworkPolicies.
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
