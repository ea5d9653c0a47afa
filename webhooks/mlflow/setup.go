package mlflow

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// ValidatePath is the path of the webhook in the ValidatingWebhookConfiguration.
const ValidatePath = "/validate-mlflow-opendatahub-io-v1-mlflow"

// ValidatingConfiguration is the name of the ValidatingWebhookConfiguration.
const ValidatingConfiguration = "mlflow-validating-webhook-configuration"

const disabledHandler = pkgadmission.DisabledComponent("the component mlflow is disabled: the MLflow is stored unchanged, but the operator does not reconcile it: set ENABLE_MLFLOW=true to change this")

// Register adds the webhook to the webhook server of the manager. namespace is the namespace of MLflow servers.
func Register(mgr ctrl.Manager, enabled bool, guards pkgadmission.Guards, namespace string) {
	next := disabledHandler.Unless(enabled, admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }))
	handler := guards.Wrap(next, mlflowv1.GroupVersion.WithKind("MLflow").GroupKind(), referencesOf(namespace))
	mgr.GetWebhookServer().Register(ValidatePath, &admission.Webhook{Handler: handler})
}
