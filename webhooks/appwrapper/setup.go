package appwrapper

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
)

// The paths of the webhooks. Configurations in clusters call them.
const (
	MutatePath   = "/mutate-workload-codeflare-dev-v1beta2-appwrapper"
	ValidatePath = "/validate-workload-codeflare-dev-v1beta2-appwrapper"
)

// The configuration objects that are shipped with the program. Kueue must see the default queue, and configurations are
// called in the order of their names.
const (
	MutatingConfiguration   = "appwrapper-mutating-webhook-configuration"
	ValidatingConfiguration = "appwrapper-validating-webhook-configuration"
)

// Register adds the webhooks to the server of the manager. The settings are read with every creation. While the component is
// switched off they judge all the same, and tell that nothing acts on what is stored.
func Register(mgr ctrl.Manager, enabled bool, guards author.Guards, settings func(context.Context) (Settings, error)) {
	server := mgr.GetWebhookServer()
	v := &validator{settings: settings, kinds: mgr.GetRESTMapper(), may: guards.May, on: enabled, most: maxPodSetsFunc(mgr.GetAPIReader())}
	server.Register(MutatePath, &admission.Webhook{Handler: &defaulter{settings}})
	server.Register(ValidatePath, &admission.Webhook{Handler: guards.OfManager().Before(v, kind, referencesOf)})
}

func referencesOf(_ author.Rules, raw []byte, namespace string) (author.References, error) {
	wrapper, err := decode(raw)
	if err != nil {
		return author.References{}, err
	}
	wrapper.Namespace = namespace
	return References(wrapper), nil
}

// Uses lists what components name, and the labels that their pods get beside those of their templates, which other users may add later.
// Whether the author may create components is reviewed by their kinds, so only what belongs to the manager matters here.
func References(wrapper *v1beta2.AppWrapper) author.References {
	u := author.References{Namespace: wrapper.Namespace}
	components := field.NewPath("spec", "components")
	for i := range wrapper.Spec.Components {
		at := components.Index(i)
		if object, err := podset.Decode(&wrapper.Spec.Components[i]); err == nil {
			u.AddReferences(object.Object, at.Child("template"))
		}
		for j, info := range wrapper.Spec.Components[i].PodSetInfos {
			u.AddMetadata(author.Label, info.Labels, at.Child("podSetInfos").Index(j).Child("labels"))
		}
	}
	return u
}
