<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Aircraft;

use Aircraft\Http\Routes;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Aircraft\Description;

final class DescriptionTest extends TestCase
{
    private Description $description;

    protected function setUp(): void
    {
        $this->description = new Description();
    }

    public function testItHasExactlyTheRoutes(): void
    {
        $routes = array_map(static fn(array $route): string => "{$route[0]} {$route[1]}", Routes::ALL);
        $described = array_keys(iterator_to_array($this->description->operations()));
        sort($routes);
        sort($described);

        self::assertSame($routes, $described);
    }

    public function testTheCompiledRoutesAreThoseThatThereAre(): void
    {
        self::assertSame(Routes::current(), Routes::compiled(), 'Run: php examples/aircraft/console.php routes');
    }

    public function testEachOperationHasANameOfItsOwn(): void
    {
        $operations = iterator_to_array($this->description->operations());
        $names = array_filter(
            array_map(static fn(array $operation): mixed => $operation[1]->operationId ?? null, $operations),
            \is_string(...),
        );

        self::assertCount(\count($operations), array_unique($names));
    }

    public function testEachReferenceLeadsSomewhere(): void
    {
        self::assertSame([], $this->description->danglingReferences());
    }

    public function testEachAnswerHasASchemaThatItsExamplesKeepTo(): void
    {
        $examples = 0;
        foreach ($this->description->contents() as $name => $pointer) {
            $place = $this->description->at($pointer);
            self::assertNotNull($place, $name);
            foreach (Description::members($place->content ?? null) as $type => $content) {
                $schema = [...$pointer, 'content', $type, 'schema'];
                self::assertNotNull($this->description->at($schema), "{$name} has a schema for {$type}");
                $values = array_map(
                    static fn(\stdClass $example): mixed => $example->value ?? null,
                    Description::members($content->examples ?? null),
                );
                foreach ([
                    ...array_values($values),
                    ...(isset($content->example) ? [$content->example] : []),
                ] as $value) {
                    self::assertNull($this->description->schemaFault($value, $schema), $name);
                    ++$examples;
                }
            }
        }
        self::assertGreaterThan(80, $examples);
    }

    public function testWhatIsNoAircraftIsRefusedByItsSchema(): void
    {
        $aircraft = (object) [
            'number' => 'D-AIMA',
            'title' => 'Airbus',
            'serial_number' => '1',
            'assembly_date' => '2010-02-30',
            'added_at' => '2026-01-31T12:00:00Z',
        ];
        $schema = ['components', 'schemas', 'Aircraft'];

        self::assertNotNull($this->description->schemaFault($aircraft, $schema));
        $aircraft->assembly_date = '2010-02-28';
        self::assertNull($this->description->schemaFault($aircraft, $schema));
        $aircraft->colour = 'blue';
        self::assertNotNull($this->description->schemaFault($aircraft, $schema));
    }
}
