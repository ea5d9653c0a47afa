package main

// What the program itself needs, whatever is switched on; each component states its own rights beside its watches. From
// these lines `make generate` writes config/rbac/manager/role.yaml.

// Following which optional APIs are served (pkg/capability).
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// Following the TLS profile of OpenShift (pkg/tlsprofile).
// +kubebuilder:rbac:groups=config.openshift.io,resources=apiservers,verbs=list;watch

// Following the domain of OpenShift's routers (pkg/clusterdomain).
// +kubebuilder:rbac:groups=config.openshift.io,resources=ingresses,verbs=list;watch

// Telling transitions of conditions (pkg/reconciler).
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Asking whether a scraper may read the metrics, and what authors of custom resources may let pods use (pkg/admission).
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Writing the CA of the webhook certificate into our own webhook configurations (pkg/certs), also while their component is
// switched off: the paths answer then, and must be trusted.
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=appwrapper-mutating-webhook-configuration;codeflare-operator-mutating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=appwrapper-validating-webhook-configuration;codeflare-operator-validating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=model-registry-operator-mutating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=model-registry-operator-validating-webhook-configuration;catalog-validating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=modelmesh-servingruntime.serving.kserve.io,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=mlflow-validating-webhook-configuration,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=modelregistries.modelregistry.opendatahub.io,verbs=get;patch
