<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\App;

use Nyholm\Psr7\ServerRequest;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\AppException;
use Spindle\Http\Internal\App\AppLoader;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\OwnDirectory;

final class AppLoaderTest extends TestCase
{
    use CatchesThrown;
    use OwnDirectory;

    private const USES = 'use Psr\Http\Message\ServerRequestInterface; use Psr\Http\Server\RequestHandlerInterface;'
        . ' use Spindle\Http\{Application, Response};';

    private const HANDLER = 'static fn(ServerRequestInterface $request) => Response::text("found")';

    private const CONTAINER = 'new class implements Psr\Container\ContainerInterface {
        public function get(string $id): mixed { return new Application(' . self::HANDLER . '); }
        public function has(string $id): bool { return $id === RequestHandlerInterface::class; }
    }';

    /** @return iterable<string, array{string}> */
    public static function apps(): iterable
    {
        yield 'a closure' => ['return ' . self::HANDLER . ';'];
        yield 'a closure that takes nothing' => ['return static fn() => Response::text("found");'];
        yield 'a closure that takes any object' => ['return static fn(object $request) => Response::text("found");'];
        yield 'a closure that takes any message' => [
            'return static fn(?Psr\Http\Message\MessageInterface $message) => Response::text("found");',
        ];
        yield 'a closure that takes a request or something else' => [
            'return static fn(array|ServerRequestInterface|null $request = null,'
                . ' string $more = "") => Response::text("found");',
        ];
        yield 'a closure that takes whatever comes' => ['return static fn(...$arguments) => Response::text("found");'];
        yield 'a closure that takes something without a type' => [
            'return static fn($request = "x") => Response::text("found");',
        ];
        yield 'a factory of a closure that takes nothing' => [
            'return static fn() => static fn() => Response::text("found");',
        ];
        yield 'an application' => ['return new Application(' . self::HANDLER . ');'];
        yield 'a handler' => ['return new Spindle\Http\MiddlewareStack(' . self::HANDLER . ');'];
        yield 'a factory of a closure' => ['return static fn() => ' . self::HANDLER . ';'];
        yield 'a factory of an application' => [
            'return static fn(): Application => new Application(' . self::HANDLER . ');',
        ];
        yield 'a container' => ['return ' . self::CONTAINER . ';'];
        yield 'a factory of a container' => ['return fn() => ' . self::CONTAINER . ';'];
    }

    #[DataProvider('apps')]
    public function testAHandlerIsFoundInWhatAFileReturns(string $code): void
    {
        $application = AppLoader::load($this->file('app.php', '<?php ' . self::USES . " {$code}"));

        self::assertSame('found', (string) $application->handle(new ServerRequest('GET', '/'))->getBody());
    }

    public function testTheCodeOfTheFileHasNoClassAndNoVariables(): void
    {
        $application = AppLoader::load($this->file(
            'app.php',
            '<?php $variables = array_keys(get_defined_vars());'
                . ' return fn() => Spindle\Http\Response::json(['
                . '$variables, (new ReflectionFunction(fn() => 1))->getClosureScopeClass()?->getName()]);',
        ));

        self::assertSame('[[],null]', (string) $application->handle(new ServerRequest('GET', '/'))->getBody());
    }

    #[TestWith(['$app->handle($request);', true])]
    #[TestWith(["throw Spindle\\Http\\UnsupportedFunctionException::called('header', 'has no effect', 'no');", true])]
    #[TestWith(["throw new DomainException('no database');", false])]
    #[TestWith(['return fn() => $app->handle($request);', false])]
    public function testAFrontControllerIsToldToReturnItsApplication(string $end, bool $isAnswer): void
    {
        $code = '$app = new Spindle\Http\MiddlewareStack(fn() => throw new DomainException());'
            . "\$request = new Nyholm\\Psr7\\ServerRequest('GET', '/'); {$end}";
        $path = $this->file('app.php', '<?php ' . self::USES . " {$code}");
        $advice = 'If the file answers a request, as a front controller does with $app->run(), leave this call out,'
            . ' and return the application';

        $message = self::thrown(AppException::class, static fn() => AppLoader::load($path))->getMessage();

        self::assertSame($isAnswer, str_ends_with($message, ". {$advice}"), $message);
    }

    /** @return iterable<string, array{string, string}> */
    public static function noApps(): iterable
    {
        yield 'a mistake' => [
            "return\n  1 +;",
            'app.php could not be parsed: syntax error, unexpected token ";" on line 2',
        ];
        yield 'an exception' => [
            "\n throw new DomainException('no database');",
            'app.php threw DomainException: no database (PATH, line 2)',
        ];
        yield 'an exception of Spindle' => [
            "\n\n new Spindle\Http\Middleware\BodyLimit(-1);",
            '(PATH, line 3)',
        ];
        yield 'an exception of Spindle that a function of the application causes' => [
            "\n\n array_map(fn(int \$size) => new Spindle\Http\Middleware\BodyLimit(\$size), [-1]);",
            '(PATH, line 3)',
        ];
        yield 'an exception of the factory' => [
            "return fn() => throw new DomainException('no database');",
            'app.php threw DomainException: no database',
        ];
        yield 'nothing' => [
            '$a = 1;',
            'app.php returned 1, as a file without a return statement does: it has to return a'
                . ' Psr\Http\Server\RequestHandlerInterface',
        ];
        yield 'a string' => ["return 'app';", "app.php returned string 'app': it has to return"];
        yield 'an object' => ['return new stdClass();', 'app.php returned stdClass: it has to return'];
        yield 'a factory of nothing' => [
            'return function () {};',
            'The factory in PATH returned null: it has to return',
        ];
        yield 'a factory of a factory' => [
            'return fn() => fn() => 1;',
            'The factory in PATH returned a closure that returned int 1 instead of a response: it has to return',
        ];
        yield 'a factory of a factory of a handler' => [
            'return fn() => fn() => ' . self::HANDLER . ';',
            'The factory in PATH returned a closure that returned Closure instead of a response: it has to return',
        ];
        yield 'a factory that takes something' => [
            "return static fn(string \$env = 'prod') => " . self::HANDLER . ';',
            'app.php returned a closure that has the first parameter string $env, which is not a request:'
                . ' it has to return',
        ];
        yield 'a factory that takes a container' => [
            'return static fn(Psr\Container\ContainerInterface&Countable $container) => ' . self::HANDLER . ';',
            'app.php returned a closure that has the first parameter Psr\Container\ContainerInterface&Countable'
                . ' $container, which is not a request: it has to return',
        ];
        yield 'a middleware' => [
            'return static fn(ServerRequestInterface $request, RequestHandlerInterface $next) =>'
                . ' $next->handle($request);',
            'app.php returned a closure that needs 2 arguments: it has to return',
        ];
        yield 'a factory of a middleware' => [
            'return static fn() => static fn($request, $next) => $next->handle($request);',
            'The factory in PATH returned a closure that needs 2 arguments: it has to return',
        ];
        yield 'a container that throws' => ['return new class implements Psr\Container\ContainerInterface {
            public function get(string $id): mixed { return null; }
            public function has(string $id): bool { throw new DomainException("not built"); }
        };', 'app.php threw DomainException: not built'];
        yield 'a container without a handler' => ['return new class implements Psr\Container\ContainerInterface {
            public function get(string $id): mixed { return null; }
            public function has(string $id): bool { return false; }
        };', 'app.php returned Psr\Container\ContainerInterface@anonymous: it has to return'];
        yield 'a container with something else' => ['return new class implements Psr\Container\ContainerInterface {
            public function get(string $id): mixed { return 7; }
            public function has(string $id): bool { return true; }
        };', 'The container in PATH returned int 7: it has to return'];
    }

    #[DataProvider('noApps')]
    public function testWhatIsNoApplicationIsSaidWithItsReason(string $code, string $message): void
    {
        $path = $this->file('app.php', '<?php ' . self::USES . " {$code}");

        $this->expectException(AppException::class);
        $this->expectExceptionMessage(str_replace('PATH', $path, $message));

        AppLoader::load($path);
    }

    public function testAFileThatIsMissingIsSaidToBe(): void
    {
        $this->expectException(AppException::class);
        $this->expectExceptionMessage('nowhere.php is not a readable file');

        AppLoader::load('nowhere.php');
    }
}
