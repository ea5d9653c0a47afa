package main

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// input is the input of a bundle.
type input struct {
	// version is the semantic version of the operator.
	version string
	// base holds the fields of the CSV that no manifest contains.
	base *v1alpha1.ClusterServiceVersion
	// description is Markdown, icon an SVG image.
	description, icon string
	parameters        []parameter
	sources           *sources
	samples           []sample
}

// output is the content of a bundle.
type output struct {
	csv *unstructured.Unstructured
	// objects are the other manifests, CRDs first.
	objects []*unstructured.Unstructured
}

// build returns the objects of a bundle.
func build(in input) (output, error) {
	s, csv := in.sources, in.base.DeepCopy()
	version, err := semver.Parse(in.version)
	if err != nil {
		return output{}, fmt.Errorf("version %q: %w: it must be a semantic version such as 1.2.3", in.version, err)
	}
	csv.Spec.Version.Version = version
	csv.Name = packageName + ".v" + in.version
	if csv.Spec.CustomResourceDefinitions.Owned, err = describeOwned(csv.Spec.CustomResourceDefinitions.Owned, s.crds); err != nil {
		return output{}, err
	}
	if csv.Spec.WebhookDefinitions, err = s.webhooks(); err != nil {
		return output{}, err
	}
	deployment := s.deployment.DeepCopy()
	if csv.Spec.RelatedImages, err = setImages(deployment, withVersionTag(in.parameters, in.version)); err != nil {
		return output{}, err
	}
	install := &csv.Spec.InstallStrategy.StrategySpec
	install.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: deployment.Name, Spec: deployment.Spec, Label: deployment.Labels}}
	if install.Permissions, install.ClusterPermissions, err = s.permissions(); err != nil {
		return output{}, err
	}
	csv.Spec.Description = strings.TrimSpace(in.description)
	csv.Spec.Icon = []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString([]byte(in.icon)), MediaType: "image/svg+xml"}}
	if csv.Annotations["alm-examples"], err = examples(in.samples, csv.Spec.CustomResourceDefinitions.Owned); err != nil {
		return output{}, err
	}
	csv.Annotations["containerImage"] = csv.Spec.RelatedImages[0].Image
	csv.Annotations["features.operators.openshift.io/disconnected"] = strconv.FormatBool(arePinned(csv.Spec.RelatedImages))
	var out output
	if out.csv, err = withoutStatus(csv); err != nil {
		return output{}, err
	}
	err = out.add(s)
	return out, err
}

// add appends the CRDs and the other objects.
func (o *output) add(s *sources) error {
	for _, d := range s.crds {
		crd := d.object.DeepCopy()
		if err := setConversionService(crd, s.deployment.Name); err != nil {
			return fmt.Errorf("the conversion of CRD %s: %w", d.crd.Name, err)
		}
		o.objects = append(o.objects, crd)
	}
	for _, object := range append(s.rolesForOthers(), s.others...) {
		object = object.DeepCopy()
		object.SetNamespace("") // OLM installs it in the namespace of the operator
		o.objects = append(o.objects, object)
	}
	return nil
}

// withoutStatus encodes a CSV without the status, which belongs to OLM.
func withoutStatus(csv *v1alpha1.ClusterServiceVersion) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, fmt.Errorf("encoding the CSV: %w", err)
	}
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}, nil
}
