package modelregistry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

const (
	// maxConversionBytes limits the body of a conversion review, which contains a whole list.
	maxConversionBytes = 64 << 20
	// objectDepth is the JSON depth of objects in a conversion review.
	objectDepth = 3
)

// converter serves conversion reviews. It decodes one object at a time, never the list.
type converter struct{}

var _ pkgadmission.MemoryLimited = converter{}

// MaxBodySize implements admission.MemoryLimited.
func (converter) MaxBodySize() int64 { return maxConversionBytes }

// Weigh implements admission.MemoryLimited.
func (converter) Weigh(body []byte) int64 { return pkgadmission.MemoryOfItems(body, objectDepth) }

// rawValue is a JSON value that is not decoded. Unlike json.RawMessage, it is not a copy.
type rawValue []byte

// UnmarshalJSON implements json.Unmarshaler.
func (v *rawValue) UnmarshalJSON(value []byte) error {
	*v = value
	return nil
}

// conversionReview is the request of the API server.
type conversionReview struct {
	APIVersion rawValue `json:"apiVersion"`
	Request    *struct {
		UID               rawValue `json:"uid"`
		DesiredAPIVersion rawValue `json:"desiredAPIVersion"`
		Objects           rawValue `json:"objects"`
	} `json:"request"`
}

// ServeHTTP implements http.Handler. It returns status 400 for an invalid body. An object that cannot be converted fails its review.
func (converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := pkgadmission.Body(r)
	var review conversionReview
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err == nil && review.Request == nil {
		err = errors.New("the ConversionReview has no request")
	}
	var version string
	if err == nil && len(review.Request.DesiredAPIVersion) > 0 {
		err = json.Unmarshal(review.Request.DesiredAPIVersion, &version)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("invalid ConversionReview: %v", err), http.StatusBadRequest)
		return
	}
	// Convert twice, because errors must be known before the response starts, and the response must not be held in memory.
	result := metav1.Status{Status: metav1.StatusSuccess}
	objects := review.Request.Objects
	if err := convertAll(io.Discard, objects, version); err != nil {
		result, objects = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}, nil
	}
	text, _ := json.Marshal(result) // strings: encoding cannot fail
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"ConversionReview","apiVersion":%s,"response":{"uid":%s,"result":%s,"convertedObjects":[`,
		review.APIVersion.orQuoted("apiextensions.k8s.io/v1"), review.Request.UID.orQuoted(""), text)
	_ = convertAll(w, objects, version) // fails only if the client has disconnected
	_, _ = io.WriteString(w, "]}}")
}

// orQuoted returns the value, or the quoted text if it is missing.
func (v rawValue) orQuoted(text string) string {
	if v == nil {
		return strconv.Quote(text)
	}
	return string(v)
}

// convertAll writes the items of a list, converted to a version. It returns an error for the first item that cannot be converted.
func convertAll(w io.Writer, list rawValue, version string) error {
	items := json.NewDecoder(bytes.NewReader(list))
	if begin, err := items.Token(); err != nil || begin != json.Delim('[') {
		return nil // nothing to convert
	}
	for i := 0; items.More(); i++ {
		var item rawValue
		if err := items.Decode(&item); err != nil {
			return fmt.Errorf("objects[%d]: %w", i, err)
		}
		converted, err := convertRaw(item, version)
		if err != nil {
			return fmt.Errorf("objects[%d]: %w", i, err)
		}
		_, _ = io.WriteString(w, ","[:min(i, 1)])
		if _, err := w.Write(converted); err != nil {
			return fmt.Errorf("writing the response: %w", err)
		}
	}
	return nil
}

func convertRaw(raw []byte, version string) ([]byte, error) {
	var object map[string]any
	if err := kjson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	converted, err := conversion.Convert(object, version)
	if err != nil {
		return nil, err
	}
	return encode(converted)
}

// encode returns an object as JSON. It does not escape <, > and &, because each would take six bytes.
func encode(object map[string]any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(object)
	return text.Bytes(), err
}
