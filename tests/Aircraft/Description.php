<?php

declare(strict_types=1);

namespace Spindle\Tests\Aircraft;

use Opis\JsonSchema\Errors\ErrorFormatter;
use Opis\JsonSchema\Validator;
use Spindle\Tests\Http\ReceivedResponse;

/** The OpenAPI description of the aircraft application. */
final class Description
{
    public const FILE = __DIR__ . '/../../examples/aircraft/openapi.json';

    private const URI = 'https://aircraft.test/openapi.json';

    /** Responses for requests that belong to no operation, by status. */
    private const ELSE = [404 => 'NothingThere', 405 => 'MethodNotAllowed'];

    private readonly \stdClass $document;
    private readonly Validator $validator;

    public function __construct()
    {
        $document = json_decode((string) file_get_contents(self::FILE), flags: \JSON_THROW_ON_ERROR);
        $this->document = $document instanceof \stdClass
            ? $document
            : throw new \UnexpectedValueException('The description is no object');
        $this->validator = new Validator();
        $this->validator->resolver()?->registerRaw($document, self::URI);
    }

    /** @return \Generator<string, array{string, \stdClass}> method in lower case and its description, by "GET /path" */
    public function operations(): \Generator
    {
        foreach (self::members($this->at(['paths'])) as $pattern => $item) {
            foreach (self::members($item) as $method => $operation) {
                if ($method !== 'parameters') {
                    yield strtoupper((string) $method) . " {$pattern}" => [(string) $method, $operation];
                }
            }
        }
    }

    /** @return \Generator<string, list<array-key>> pointers to bodies of requests and responses */
    public function contents(): \Generator
    {
        foreach ($this->operations() as $name => [$method]) {
            $operation = ['paths', explode(' ', $name)[1], $method];
            if (isset($this->at($operation)->requestBody)) {
                yield "{$name} body" => [...$operation, 'requestBody'];
            }
            foreach (array_keys(self::members($this->at([...$operation, 'responses']))) as $status) {
                yield "{$name} {$status}" => $this->followed([...$operation, 'responses', $status]);
            }
        }
        foreach (array_keys(self::members($this->at(['components', 'responses']))) as $name) {
            yield (string) $name => ['components', 'responses', $name];
        }
    }

    /**
     * Yields the errors for which the description has an example of a request.
     *
     * Each value has the method, target, headers and body of the request, and the status and problem of the response.
     *
     * @return \Generator<string, array{string, string, array<string, string>, string, int, mixed}>
     */
    public function refusals(): \Generator
    {
        foreach ($this->contents() as $name => $pointer) {
            foreach (self::members($this->at([...$pointer, 'content'])) as $type => $content) {
                foreach (self::members($content->examples ?? null) as $key => $example) {
                    $request = json_decode((string) json_encode($example->{'x-request'} ?? null), true);
                    if (\is_array($request)) {
                        /** @var array{target: string, headers?: array<string, string>, body?: string} $request */
                        [$method, , $status] = explode(' ', $name) + [2 => ''];
                        yield "{$name} {$key}" => [
                            $method,
                            $request['target'],
                            $request['headers'] ?? [],
                            $request['body'] ?? '',
                            (int) $status,
                            json_decode((string) json_encode($example->value), true),
                        ];
                    }
                }
            }
        }
    }

    /** @return list<string> references whose target does not exist */
    public function danglingReferences(): array
    {
        preg_match_all('/"\$ref": "([^"]*)"/', (string) file_get_contents(self::FILE), $found);

        return array_values(array_filter(
            array_unique($found[1]),
            fn(string $reference): bool
                => !str_starts_with($reference, '#/') || $this->at(explode('/', substr($reference, 2))) === null,
        ));
    }

    /** @return string|null difference between a response and its description; null if there is none */
    public function fault(string $method, string $target, ReceivedResponse $response): ?string
    {
        $pointer = $this->answer($method === 'HEAD' ? 'GET' : $method, explode('?', $target)[0], $response->status);
        $described = $pointer === null ? null : $this->at($pointer);
        if ($pointer === null || $described === null) {
            return "{$response->status} is not described: {$response->body}";
        }
        foreach (self::members($described->headers ?? null) as $name => $header) {
            if (($header->required ?? false) === true && $response->header(strtolower((string) $name)) === null) {
                return "{$name} is missing";
            }
        }
        $type = explode(';', $response->header('content-type') ?? '')[0];
        $types = array_keys(self::members($described->content ?? null));

        return match (true) {
            $types === [] => $type === '' && $response->body === '' ? null : "It should have no body, and has {$type}",
            !\in_array($type, $types, true) => "It is of the type \"{$type}\"",
            $method === 'HEAD' => $response->body === '' ? null : 'It has a body',
            default => $this->schemaFault(
                str_ends_with($type, 'json')
                    ? json_decode($response->body, flags: \JSON_THROW_ON_ERROR)
                    : $response->body,
                [...$pointer, 'content', $type, 'schema'],
            ),
        };
    }

    /**
     * @param list<array-key> $pointer to a schema
     *
     * @return string|null error of the data against the schema; null if there is none
     */
    public function schemaFault(mixed $data, array $pointer): ?string
    {
        $fragment = implode(
            '/',
            array_map(
                static fn(int|string $name): string => rawurlencode(strtr((string) $name, ['~' => '~0', '/' => '~1'])),
                $pointer,
            ),
        );
        $error = $this->validator->validate($data, self::URI . "#/{$fragment}")->error();

        return $error === null ? null : json_encode((new ErrorFormatter())->format($error), \JSON_THROW_ON_ERROR);
    }

    /** @param list<array-key> $pointer */
    public function at(array $pointer): ?\stdClass
    {
        $place = $this->document;
        foreach ($pointer as $name) {
            $place = $place->{$name} ?? null;
            if (!$place instanceof \stdClass) {
                return null;
            }
        }

        return $place;
    }

    /** @return array<array-key, \stdClass> properties of an object that are objects themselves */
    public static function members(mixed $object): array
    {
        $members = [];
        foreach ($object instanceof \stdClass ? get_object_vars($object) : [] as $name => $member) {
            if ($member instanceof \stdClass) {
                $members[$name] = $member;
            }
        }

        return $members;
    }

    /** @return list<array-key>|null pointer to the described response */
    private function answer(string $method, string $path, int $status): ?array
    {
        foreach (array_keys(iterator_to_array($this->operations())) as $name) {
            [$of, $pattern] = explode(' ', $name);
            if (
                $of === $method
                && preg_match(
                    '~^'
                        . str_replace(
                            '\{number\}',
                            '(?!(?:import|export|events)(?:/|$))[^/]+',
                            preg_quote($pattern, '~'),
                        )
                        . '$~D',
                    $path,
                ) === 1
            ) {
                return $this->followed(['paths', $pattern, strtolower($method), 'responses', (string) $status]);
            }
        }

        return isset(self::ELSE[$status]) ? ['components', 'responses', self::ELSE[$status]] : null;
    }

    /**
     * @param list<array-key> $pointer
     *
     * @return list<array-key> target of the pointer, after a reference if there is one
     */
    private function followed(array $pointer): array
    {
        $reference = $this->at($pointer)->{'$ref'} ?? null;

        return \is_string($reference) ? explode('/', substr($reference, 2)) : $pointer;
    }
}
