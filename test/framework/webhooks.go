package framework

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DisableWebhooks empties the installed webhook configurations, for suites whose manager does not listen on Installed.WebhookPort. The
// configurations remain, because the manager writes their CA bundle.
func (e *Env) DisableWebhooks(ctx context.Context) {
	ginkgo.GinkgoHelper()
	for _, object := range e.Installed.Objects {
		if kind := object.GetKind(); kind == "MutatingWebhookConfiguration" || kind == "ValidatingWebhookConfiguration" {
			empty := client.RawPatch(types.MergePatchType, []byte(`{"webhooks":[]}`))
			gomega.Expect(e.Admin.Patch(ctx, object.DeepCopy(), empty)).To(gomega.Succeed())
		}
	}
}

// WaitForWebhooks waits until the API server reaches and trusts the webhooks of objects, whether they allow or deny a dry run.
func (e *Env) WaitForWebhooks(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Eventually(func() string {
			err := e.Admin.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
			if err != nil && (strings.Contains(err.Error(), "failed calling webhook") || strings.Contains(err.Error(), "conversion webhook")) {
				return err.Error()
			}
			return ""
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPoll).Should(gomega.BeEmpty())
	}
}

// WaitAdmitted waits until dry runs of the creation of objects succeed.
func (e *Env) WaitAdmitted(ctx context.Context, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Eventually(func() error { return e.Admin.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll) }).
			WithContext(ctx).WithTimeout(waitTimeout).WithPolling(waitPoll).Should(gomega.Succeed(), "%T %s", object, object.GetName())
	}
}

// HoldLease gives the Lease of the leader election to another client. A manager with leader election then only serves webhooks.
func (e *Env) HoldLease(ctx context.Context) {
	ginkgo.GinkgoHelper()
	now := metav1.NowMicro()
	gomega.Expect(e.Admin.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Installed.ServiceAccount.Namespace, Name: "odh-platform-operator"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another-manager"), LeaseDurationSeconds: new(int32(24 * 60 * 60)), AcquireTime: &now, RenewTime: &now,
		},
	})).To(gomega.Succeed())
}

// DisableMLflowWebhook disables the webhook of MLflow by a match condition, for suites whose manager does not listen on
// Installed.WebhookPort, and for suites that change an MLflow while no manager runs. The suite abuse tests the webhook.
func (e *Env) DisableMLflowWebhook(ctx context.Context) {
	ginkgo.GinkgoHelper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "mlflow-validating-webhook-configuration"}}
	err := e.Admin.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)
	gomega.Expect(client.IgnoreNotFound(err)).To(gomega.Succeed())
	if err != nil || len(configuration.Webhooks) == 0 {
		return // not installed, or emptied by the suite
	}
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/webhooks/0/matchConditions", "value": [{"name": "never", "expression": "false"}]}]`))
	gomega.Expect(e.Admin.Patch(ctx, configuration, patch)).To(gomega.Succeed())
}
