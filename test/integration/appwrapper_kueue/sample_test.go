package appwrapper_kueue_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The sample of queues", func() {
	It("is accepted by Kueue and its webhooks", func(ctx SpecContext) {
		objects, err := framework.ReadObjects("../../../config/samples/kueue/queues.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(objects).To(HaveLen(3))
		for _, object := range objects {
			if object.GetKind() == "LocalQueue" {
				object.SetNamespace("default")
			}
			object.SetName("sample-" + object.GetName()) // a dry run with an existing name is rejected
			Expect(client.WithFieldValidation(env.Admin, "Strict").Create(ctx, object, client.DryRunAll)).To(Succeed(), object.GetKind())
		}
	}, SpecTimeout(specTimeout))
})
