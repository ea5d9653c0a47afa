package appwrapper

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
)

// The paths of the webhooks. Webhook configurations of existing installations refer to them.
const (
	MutatePath   = "/mutate-workload-codeflare-dev-v1beta2-appwrapper"
	ValidatePath = "/validate-workload-codeflare-dev-v1beta2-appwrapper"
)

// The webhook configurations. The API server calls webhooks in the order of these names: the default queue must be set before Kueue is called.
const (
	MutatingConfiguration   = "appwrapper-mutating-webhook-configuration"
	ValidatingConfiguration = "appwrapper-validating-webhook-configuration"
)

// Register adds the webhooks to the server of the manager. The settings are read for every creation and start. While the component is disabled,
// the webhooks work as usual, and the validating one adds a warning.
func Register(mgr ctrl.Manager, enabled bool, guards pkgadmission.Guards, settings func(context.Context) (Settings, error)) {
	server := mgr.GetWebhookServer()
	v := &validator{settings: settings, mapper: mgr.GetRESTMapper(), access: guards.Access, enabled: enabled, podSetLimit: podSetLimitFunc(mgr.GetAPIReader())}
	server.Register(MutatePath, &admission.Webhook{Handler: &defaulter{settings}})
	server.Register(ValidatePath, &admission.Webhook{Handler: guards.ForManagerOnly().Wrap(v, kind, referencesOf)})
}

func referencesOf(_ pkgadmission.Rules, raw []byte, namespace string) (pkgadmission.References, error) {
	wrapper, err := decode(raw)
	if err != nil {
		return pkgadmission.References{}, err
	}
	wrapper.Namespace = namespace
	return References(wrapper), nil
}

// References returns the references in the components, and the labels in podSetInfos. The permissions to create the components are reviewed
// by kind, so the guards reject only references to objects of the manager and reserved labels.
func References(wrapper *v1beta2.AppWrapper) pkgadmission.References {
	references := pkgadmission.References{Namespace: wrapper.Namespace}
	components := field.NewPath("spec", "components")
	for i := range wrapper.Spec.Components {
		path := components.Index(i)
		if object, err := podset.Decode(&wrapper.Spec.Components[i]); err == nil {
			references.AddReferences(object.Object, path.Child("template"))
		}
		for j, info := range wrapper.Spec.Components[i].PodSetInfos {
			references.AddMetadata(pkgadmission.Label, info.Labels, path.Child("podSetInfos").Index(j).Child("labels"))
		}
	}
	return references
}
