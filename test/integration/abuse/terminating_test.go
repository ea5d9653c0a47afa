package abuse_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The webhooks do not validate changes of terminating objects, so the manager must not apply these changes.
var _ = Describe("An editor who blocks the deletion of an object with a finalizer", func() {
	for title, attempt := range map[string]struct {
		user, change string
		object       func() *unstructured.Unstructured
	}{
		"an MLflow":  {mlflowEditor, `{"image":{"image":"quay.io/evil/image"}}`, func() *unstructured.Unstructured { return object("", mlflow("{}")) }},
		"a registry": {registryEditor, `{"rest":{"image":"quay.io/evil/image"}}`, func() *unstructured.Unstructured { return object(team, registry("leaving", "{}")) }},
		"a Catalog": {catalogEditor, `{"proxy":{"certificateSecretName":"evil"},"database":{"external":{"host":"db","secretName":"evil"}}}`, func() *unstructured.Unstructured {
			return object(team, catalog("catalog", "{}"))
		}},
	} {
		It("cannot change the pods of "+title, func(ctx SpecContext) {
			o := attempt.object()
			o.SetFinalizers([]string{"example.com/stay"})
			Expect(as(attempt.user).Create(ctx, o)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(env.Admin.Patch(ctx, o, merge(`{"metadata":{"finalizers":null}}`))).To(Succeed())
				env.WaitDeleted(ctx, o)
			}, NodeTimeout(specTimeout))
			Expect(as(attempt.user).Delete(ctx, o)).To(Succeed())
			Expect(as(attempt.user).Patch(ctx, o, merge(`{"spec":`+attempt.change+`}`))).To(Succeed())
			env.WaitIdle(manager.User, idlePeriod, waitTimeout)
			namespace := o.GetNamespace()
			if namespace == "" {
				namespace = operatorNamespace
			}
			for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &batchv1.JobList{}, &batchv1.CronJobList{}} {
				Expect(env.Admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
				text, err := json.Marshal(list)
				Expect(err).NotTo(HaveOccurred())
				Expect(string(text)).NotTo(ContainSubstring("evil"))
			}
		}, NodeTimeout(specTimeout))
	}
})
