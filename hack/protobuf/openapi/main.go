// Command openapi writes a document of OpenAPI, of whichever version, in protobuf, as Go does it.
//
// It reads JSON (go run ./openapi <document.json >document.pb). With a file that somebody else
// wrote it says instead whether that says the same (go run ./openapi theirs.pb <document.json).
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	second "github.com/google/gnostic-models/openapiv2"
	third "github.com/google/gnostic-models/openapiv3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func main() {
	log.SetFlags(0)
	text, err := io.ReadAll(os.Stdin)
	check(err)
	document, theirs := parse(text)
	normalise(document.ProtoReflect())
	if len(os.Args) < 2 {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(document)
		check(err)
		_, err = os.Stdout.Write(data)
		check(err)
		return
	}
	data, err := os.ReadFile(os.Args[1])
	check(err)
	check(proto.Unmarshal(data, theirs))
	normalise(theirs.ProtoReflect())
	if !proto.Equal(document, theirs) {
		log.Fatal("they differ")
	}
	fmt.Println("they say the same")
}

// parse reads a document, and makes an empty one of the same version.
func parse(text []byte) (proto.Message, proto.Message) {
	var head struct{ Swagger string }
	check(json.Unmarshal(text, &head))
	if head.Swagger != "" {
		document, err := second.ParseDocument(text)
		check(err)
		return document, &second.Document{}
	}
	document, err := third.ParseDocument(text)
	check(err)
	return document, &third.Document{}
}

// normalise writes all YAML in a message as JSON, so that there is one way to write it.
func normalise(message protoreflect.Message) {
	switch found := message.Interface().(type) {
	case *second.Any:
		found.Yaml = inJSON(found.Yaml)
		return
	case *third.Any:
		found.Yaml = inJSON(found.Yaml)
		return
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Kind() != protoreflect.MessageKind:
		case field.IsList():
			for i := range value.List().Len() {
				normalise(value.List().Get(i).Message())
			}
		default:
			normalise(value.Message())
		}
		return true
	})
}

func inJSON(text string) string {
	var value any
	check(yaml.Unmarshal([]byte(text), &value))
	data, err := json.Marshal(value)
	check(err)
	return string(data) + "\n"
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
