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

// defaulted are fields that the API server defaults, in recordings only.
var defaulted = []string{
	"terminationMessagePath", "terminationMessagePolicy", "dnsPolicy", "restartPolicy", "schedulerName", "terminationGracePeriodSeconds",
	"defaultMode", "imagePullPolicy", "progressDeadlineSeconds", "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy",
	"failureThreshold", "successThreshold", "periodSeconds", "sessionAffinity", "targetPort", "rollingUpdate", "serviceAccount", "strategy",
}

// intendedDifferences are the intended differences from the recording, by object and prefix of the path.
var intendedDifferences = map[string]string{
	"* metadata.ownerReferences":                                                              "the Catalog owns them",
	"* metadata.labels":                                                                       "eight labels, the same on all objects",
	"ConfigMap/default-catalog-sources data":                                                  "agents, runtimes, more labels; the texts are ours",
	"ConfigMap/model-catalog-kube-rbac-proxy-config data":                                     "the same rule, encoded and not pasted",
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

// elsewhere are recorded objects that are not part of Build or no longer exist.
var elsewhere = []string{
	"ConfigMap/mcp-catalog-sources", "ConfigMap/model-catalog-sources", "Secret/model-catalog-postgres", "PersistentVolumeClaim/model-catalog-postgres",
}

// leaves returns the values of a tree by path; list elements are identified by name or index.
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

func isMeant(object, path string) bool {
	for key := range intendedDifferences {
		of, prefix, _ := strings.Cut(key, " ")
		if (of == "*" || of == object) && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return slices.ContainsFunc(strings.Split(path, "."), func(part string) bool { return slices.Contains(defaulted, part) })
}

func keyOf(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// The objects are those of the legacy operator on plain Kubernetes, except for intended differences.
func TestRecordedObjects(t *testing.T) {
	recorded, err := framework.ReadObjects(filepath.Join("testdata", "recorded", "plain.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects := buildObjects(t, sample(), kubernetes())
	for _, old := range recorded {
		if slices.Contains(elsewhere, keyOf(old)) {
			continue
		}
		now := find(objects, old.GetKind(), old.GetName())
		if now == nil {
			t.Errorf("%s is not made any more", keyOf(old))
			continue
		}
		want, got := map[string]string{}, map[string]string{}
		leaves("", framework.Normalize(old).Object, want)
		leaves("", framework.Normalize(now).Object, got)
		for path, value := range want {
			if got[path] != value && !isMeant(keyOf(old), path) {
				t.Errorf("%s %s: recorded %q, now %q", keyOf(old), path, value, got[path])
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
	fresh := []string{"securityContext", "startupProbe", "automountServiceAccountToken", "user-agent-sources", "user-serving-runtime-sources"}
	for _, now := range buildObjects(t, sample(), kubernetes()) {
		old := find(recorded, now.GetKind(), now.GetName())
		if old == nil {
			if now.GetKind() != "NetworkPolicy" {
				t.Errorf("%s is new", keyOf(now))
			}
			continue
		}
		before, after := map[string]string{}, map[string]string{}
		leaves("", framework.Normalize(old).Object, before)
		leaves("", framework.Normalize(now).Object, after)
		for path, value := range after {
			_, was := before[path]
			explained := slices.ContainsFunc(fresh, func(part string) bool { return strings.Contains(path, part) })
			if !was && !explained && !isMeant(keyOf(now), path) {
				t.Errorf("%s %s: %q is new", keyOf(now), path, value)
			}
		}
	}
}
