package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

const withReferences = installation + `---
{apiVersion: mlflow.opendatahub.io/v1, kind: MLflow, metadata: {name: mlflow}, spec: {
  backendStoreUriFrom: {name: db, key: uri}, envFrom: [{secretRef: {name: gone}}], caBundleConfigMap: {name: ca}}}
---
{apiVersion: serving.kserve.io/v1alpha1, kind: ServingRuntime, metadata: {namespace: models, name: r}, spec: {multiModel: true, imagePullSecrets: [{name: pull}]}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: opendatahub, name: db}, data: {password: YQ==}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: opendatahub, name: ca}, data: {ca.crt: x}}
`

// Findings name the resource, the object that it needs, the key, and what to do.
func TestReferences(t *testing.T) {
	cluster, dynamic := fakeCluster(t, withReferences)
	f := gathered(t, cluster)
	found := of(judge(f, ships(t)), "references")
	want := []Finding{
		{Check: "references", Result: Fail, Subject: "MLflow mlflow", Found: "Secret opendatahub/db has no key uri", Fix: "kubectl -n opendatahub edit secret db, and add what is missing"},
		{Check: "references", Result: Fail, Subject: "MLflow mlflow", Found: "Secret opendatahub/gone does not exist", Fix: "kubectl -n opendatahub create secret generic gone"},
		{Check: "references", Result: Fail, Subject: "ServingRuntime models/r", Found: "Secret models/pull does not exist", Fix: "kubectl -n models create secret generic pull"},
	}
	for i := range want {
		want[i].Why = "pods that use them do not start, or keep running with the values that they were started with"
	}
	if !slices.Equal(found, want) {
		t.Errorf("%+v", found)
	}

	dynamic.PrependReactor("get", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no"))
	})
	found = of(judge(gathered(t, cluster), ships(t)), "references")
	for subject, right := range map[string]string{"secrets db": "get secrets in namespace opendatahub", "secrets gone": "get secrets in namespace opendatahub", "secrets pull": "get secrets in namespace models"} {
		if !slices.ContainsFunc(found, func(x Finding) bool {
			return x.Result == Unknown && x.Subject == subject && strings.HasSuffix(x.Fix, "the permission to "+right)
		}) {
			t.Errorf("%s may not be read, which is not reported: %+v", subject, found)
		}
	}
}

// Where the settings are not known, neither is the namespace of MLflow, and nothing is reported as ok.
func TestReferencesWithoutTheManager(t *testing.T) {
	cluster, _ := fakeCluster(t, strings.Replace(withReferences, "name: odh-platform-operator-controller-manager", "name: another", 1))
	found := of(judge(gathered(t, cluster), ships(t)), "references")
	unknown := slices.DeleteFunc(slices.Clone(found), func(x Finding) bool { return x.Result != Unknown })
	if len(unknown) != 3 || unknown[0].Subject != "MLflow mlflow" || !strings.Contains(unknown[0].Found, "the namespace of the server is not known") {
		t.Errorf("%+v", found)
	}
}

func TestReferencesThatExist(t *testing.T) {
	text := strings.NewReplacer("password:", "uri:", "name: gone", "name: db", "name: pull", "name: m").Replace(withReferences)
	cluster, _ := fakeCluster(t, text+"---\n{apiVersion: v1, kind: Secret, metadata: {namespace: models, name: m}}\n")
	problems, fine := checkReferences(gathered(t, cluster), Shipped{})
	if len(problems) > 0 || fine != "3 Secrets and ConfigMaps that resources name exist" {
		t.Errorf("%+v, %q", problems, fine)
	}
}
