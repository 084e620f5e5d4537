<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Nyholm\Psr7\ServerRequest;
use Nyholm\Psr7\Uri;
use PHPUnit\Framework\Attributes\DataProvider;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\UriInterface;
use Spindle\Http\Middleware\StaticFiles;
use Spindle\Tests\Locale;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;

final class StaticFilesTest extends TidyTestCase
{
    use OwnDirectory;

    private const PASSED_ON = 'answer';
    private const SECRET = 'secret';

    /** Names of copies of PHP files, as editors and people choose them. */
    private const COPIES = [
        'a.php.bak',
        'a.php~',
        'a.php.save',
        'a.php.save.1',
        'a.php.old',
        'a.php_old',
        'a.php-2024-01-31',
        'a.PHP.BAK',
        'a.php.orig~',
        'a.php.~1~',
        '#a.php#',
        'a.php.swp',
        'a.phtml.bak',
        'config.inc~',
        'a.php.1',
    ];

    /** @return iterable<string, array{string, string}> */
    private static function paths(): iterable
    {
        yield 'a file' => ['/file.txt', 'file'];
        yield 'a file in a directory' => ['/css/main.css', 'styles'];
        yield 'the index of the root' => ['/', 'start'];
        yield 'the index of nothing' => ['', 'start'];
        yield 'the index of a directory' => ['/docs/', 'docs'];
        yield 'the index by its name' => ['/docs/index.html', 'docs'];
        yield 'a name with blanks' => ['/a%20b+c.txt', 'blank'];
        yield 'a name beyond ASCII' => ['/%C3%A4%e2%82%ac.txt', 'euro'];
        yield 'an unreserved character, encoded' => ['/%66ile%2Etxt', 'file'];
        yield 'a percent sign' => ['/100%25.txt', 'percent'];
        yield 'a name that looks encoded, encoded' => ['/%2566ile.txt', 'encoded twice'];
        yield 'dots that are no beginning' => ['/a..b', 'dots'];
        yield 'a name that ends with dots' => ['/dots...', 'dots, too'];
        yield 'what is well known' => ['/.well-known/security.txt', 'contact'];
        yield 'a directory in what is well known' => ['/.well-known/acme-challenge/token', 'token'];
        yield 'what is about code' => ['/index.php.html', 'page'];
        yield 'what is no code' => ['/a.php.png', 'picture'];
        yield 'a link to a file' => ['/link.txt', 'file'];
        yield 'a link to a directory' => ['/linked/main.css', 'styles'];
        yield 'a link that leads out and in' => ['/around.txt', 'file'];
    }

    public function testAFileBelowTheRootIsServed(): void
    {
        $files = new StaticFiles($this->root());
        foreach (self::paths() as $name => [$path, $content]) {
            foreach (['GET', 'HEAD'] as $method) {
                $handler = new Handler();
                $response = $files->process(self::request($path, $method), $handler);

                self::assertNull($handler->request, $name);
                self::assertSame([200, $content], [$response->getStatusCode(), (string) $response->getBody()], $name);
            }
        }
    }

    /** Nyholm's URIs return a path with one slash at its beginning. */
    public function testSeveralSlashesAtTheBeginningOfTheTargetAreNotServed(): void
    {
        $files = new StaticFiles($this->root());
        $isServed = static function (string $target) use ($files): bool {
            $uri = new Uri(str_contains($target, ':') ? $target : "http://a{$target}");
            $handler = new Handler();
            $files->process((new ServerRequest('GET', $uri))->withRequestTarget($target), $handler);

            return $handler->request === null;
        };
        foreach (['//file.txt', '///docs', '//docs/?a', '//', 'http://a//file.txt', 'HTTPS://a//docs?b'] as $target) {
            self::assertFalse($isServed($target), $target);
        }
        foreach (['/file.txt?a=//b', 'http://a/file.txt?//', 'http://a?//', '/docs/'] as $target) {
            self::assertTrue($isServed($target), $target);
        }
    }

    /** @return iterable<string, array{string}> */
    private static function strangePaths(): iterable
    {
        $ups = [
            'dots' => '..',
            'encoded dots' => '%2e%2e',
            'an encoded dot' => '.%2E',
            'doubly encoded dots' => '%252e%252e',
            'one dot' => '.',
            'an encoded single dot' => '%2e',
            'three dots' => '...',
            'overlong dots' => '%c0%ae%c0%ae',
            'overlong dots of three bytes' => '%e0%80%ae%e0%80%ae',
            'wide dots' => '%u002e%u002e',
            'full-width dots' => '%ef%bc%8e%ef%bc%8e',
            'dots and a blank' => '..%20',
            'dots and NUL' => '..%00',
            'dots and a semicolon' => '..;',
        ];
        $slashes = [
            'a slash' => '/',
            'an encoded slash' => '%2f',
            'a doubly encoded slash' => '%252f',
            'a backslash' => '\\',
            'an encoded backslash' => '%5C',
            'an overlong slash' => '%c0%af',
            'another overlong slash' => '%c1%9c',
            'a full-width slash' => '%ef%bc%8f',
            'two slashes' => '//',
        ];
        foreach ($ups as $up => $dots) {
            foreach ($slashes as $by => $slash) {
                yield "{$up}, {$by}" => ["/{$dots}{$slash}secret.txt"];
                yield "{$up}, {$by}, from a directory" => ["/css/{$dots}{$slash}{$dots}{$slash}secret.txt"];
                yield "{$up}, {$by}, to /etc" => ['/' . str_repeat($dots . $slash, 12) . 'etc/passwd'];
            }
        }
        yield 'an absolute path' => ['//etc/passwd'];
        yield 'an absolute path, encoded' => ['/%2fetc/passwd'];
        yield 'an absolute path in a directory' => ['/css//etc/passwd'];
        yield 'a path that is below nothing' => ['file.txt'];
        yield 'dots without a slash' => ['/..'];
        yield 'dots at the end' => ['/css/..'];
        yield 'dots that lead back in' => ['/../root/file.txt'];
        yield 'dots that do not lead out' => ['/css/../file.txt'];
        yield 'a dot that leads nowhere' => ['/./file.txt'];
        yield 'an empty name' => ['/css//main.css'];
        yield 'an empty name before the index' => ['/docs//'];
        yield 'an empty name at the beginning' => ['//file.txt'];
        yield 'an encoded slash between names' => ['/css%2fmain.css'];
        yield 'a backslash between names' => ['/css\\main.css'];
        yield 'an encoded backslash between names' => ['/css%5Cmain.css'];
        yield 'an encoded slash at the end' => ['/docs%2f'];
        yield 'NUL at the end' => ['/file.txt%00'];
        yield 'NUL before another extension' => ['/file.txt%00.png'];
        yield 'a line break at the end' => ['/file.txt%0a'];
        yield 'a control character' => ['/%07'];
        yield 'DEL' => ['/%7f'];
        yield 'a lonely percent sign' => ['/%'];
        yield 'a percent sign before what is no number' => ['/%zzfile.txt'];
        yield 'half a number' => ['/file.txt%2'];
        yield 'no UTF-8' => ['/%ff'];
        yield 'a surrogate' => ['/%ed%a0%80'];
        yield 'the root of another file system' => ['/c:/file.txt'];
        yield 'a URL of a stream wrapper' => ['/php://stdin'];
        yield 'a very long name' => ['/' . str_repeat('a', 5000)];
        yield 'very many names' => ['/' . str_repeat('a/', 5000)];

        yield 'a dot file' => ['/.env'];
        yield 'a dot file, encoded' => ['/%2eenv'];
        yield 'a dot file in a directory' => ['/css/.htaccess'];
        yield 'a file in a dot directory' => ['/.git/config'];
        yield 'a dot file where things are well known' => ['/.well-known/.secret'];
        yield 'a directory that is well known elsewhere' => ['/css/.well-known/file.txt'];
        yield 'a name that begins as well known' => ['/.well-known.txt'];
        yield 'a link to a file outside' => ['/out.txt'];
        yield 'a link to a directory outside' => ['/outside/secret.txt'];
        yield 'a link to a directory outside, for its index' => ['/outside/'];
        yield 'a link to a directory outside, without its slash' => ['/outside'];
        yield 'a link to a link to a file outside' => ['/out2.txt'];
        yield 'an index that is a link to a file outside' => ['/indexed-outside/'];
        yield 'a directory whose index is a link to a file outside' => ['/indexed-outside'];
        yield 'a link to the directory above' => ['/up/secret.txt'];
        yield 'a link to a directory whose name begins with that of the root' => ['/alike/secret.txt'];
        yield 'a link to /' => ['/slash/etc/passwd'];
        yield 'a link to a device' => ['/null'];
        yield 'a link to nowhere' => ['/dangling'];
        yield 'a link to itself' => ['/circle'];
        yield 'a pipe' => ['/pipe'];
        yield 'a directory without an index' => ['/css/'];
        yield 'a directory without an index, without its slash' => ['/css'];
        yield 'a file as a directory' => ['/file.txt/'];
        yield 'something in a file' => ['/file.txt/more'];
        yield 'what is not there' => ['/absent.txt'];
        yield 'a directory that is not there' => ['/absent/'];
        yield 'something in a directory that is not there' => ['/absent/file.txt'];
        yield 'other letters' => ['/FILE.txt'];
        yield 'code' => ['/index.php'];
        yield 'code in capitals' => ['/INDEX.PHP'];
        yield 'code of old' => ['/old.phtml'];
        yield 'an archive of code' => ['/app.phar'];
        yield 'code that is included' => ['/config.inc'];
        yield 'a link to code' => ['/readme.txt'];
        yield 'a link to a copy of code' => ['/copied.txt'];
        foreach (self::COPIES as $copy) {
            yield "a copy of code, {$copy}" => ['/' . rawurlencode($copy)];
        }
    }

    public function testAStrangePathReachesTheNextHandler(): void
    {
        $files = new StaticFiles($this->root());
        foreach (self::strangePaths() as $name => [$path]) {
            foreach (['GET', 'HEAD'] as $method) {
                $handler = new Handler();
                $request = self::request($path, $method);
                $response = $files->process($request, $handler);

                self::assertSame(
                    [200, self::PASSED_ON],
                    [$response->getStatusCode(), (string) $response->getBody()],
                    $name,
                );
                self::assertSame($request, $handler->request, $name);
            }
        }
    }

    public function testSourceCodeIsNotServedInAnyLocale(): void
    {
        $files = new StaticFiles($this->root());
        $answers = Locale::withDotlessI($this->path(), static fn(): array => array_map(
            static fn(string $path): string => self::content($files, $path),
            ['/CONFIG.INC', '/a.php.ORIG', '/a.php.dist'],
        ));
        $answers ?? self::markTestSkipped('The locale can not be loaded');

        self::assertSame([self::PASSED_ON, self::PASSED_ON, self::PASSED_ON], $answers);
    }

    public function testOtherMethodsReachTheNextHandler(): void
    {
        foreach (['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'get'] as $method) {
            $handler = new Handler();
            (new StaticFiles($this->root()))->process(self::request('/file.txt', $method), $handler);

            self::assertSame($method, $handler->got()->getMethod());
        }
    }

    public function testAFileThatCanNotBeReadReachesTheNextHandler(): void
    {
        $files = new StaticFiles($this->root());
        chmod($this->path('root/file.txt'), 0);
        $isRoot = posix_geteuid() === 0;
        $isRoot ? posix_seteuid(65_534) : null;
        try {
            self::assertSame(self::PASSED_ON, self::content($files, '/file.txt'));
        } finally {
            $isRoot ? posix_seteuid(0) : null;
        }
    }

    public function testAFileIsServedAsResponsesFromFilesAre(): void
    {
        touch($this->root() . '/css/main.css', 1_000_000_000);
        $files = new StaticFiles($this->root());
        $get = static fn(array $headers): ResponseInterface
            => $files->process(new ServerRequest('GET', '/css/main.css', $headers), new Handler());
        $whole = $get([]);

        self::assertSame('text/css; charset=utf-8', $whole->getHeaderLine('Content-Type'));
        self::assertSame('bytes', $whole->getHeaderLine('Accept-Ranges'));
        self::assertFalse($whole->hasHeader('Cache-Control'));
        self::assertSame(304, $get(['If-None-Match' => $whole->getHeaderLine('ETag')])->getStatusCode());
        self::assertSame('yles', (string) $get(['Range' => 'bytes=2-'])->getBody());
        self::assertSame(416, $get(['Range' => 'bytes=6-'])->getStatusCode());
    }

    public function testTheMaximumAgeOfFilesIsConfigurable(): void
    {
        foreach ([0, 3600] as $seconds) {
            $files = new StaticFiles($this->root(), maxAge: $seconds);
            self::assertSame("max-age={$seconds}", self::get($files, '/file.txt')->getHeaderLine('Cache-Control'));
            self::assertSame(
                "max-age={$seconds}",
                $files->process(
                    new ServerRequest('GET', '/file.txt', ['If-None-Match' => '*']),
                    new Handler(),
                )->getHeaderLine('Cache-Control'),
            );
        }
    }

    /** @return iterable<string, array{string, string, string, string}> the prefix, the path, the query, Location */
    private static function directories(): iterable
    {
        yield 'a directory' => ['/', '/docs', '', './docs/'];
        yield 'with a query' => ['/', '/docs', 'a=b%20c&d', './docs/?a=b%20c&d'];
        yield 'a directory in a directory' => ['/', '/docs/more', '', './more/'];
        yield 'a link to a directory' => ['/', '/linked-docs', '', './linked-docs/'];
        yield 'an encoded name' => ['/', '/%64ocs', '', './%64ocs/'];
        yield 'a name that looks like a scheme' => ['/', '/javascript:x', '', './javascript:x/'];
        yield 'a name that looks like a host' => ['/', '/@evil.example', '', './@evil.example/'];
        yield 'the prefix' => ['/assets', '/assets', '', './assets/'];
        yield 'the prefix with its slash' => ['/assets/', '/assets', 'a', './assets/?a'];
        yield 'below the prefix' => ['/assets', '/assets/docs', '', './docs/'];
    }

    public function testADirectoryWithAnIndexIsRedirectedToItsSlash(): void
    {
        $root = $this->root();
        foreach (self::directories() as $name => [$prefix, $path, $query, $location]) {
            $response = (new StaticFiles($root, $prefix))->process(self::request($path, query: $query), new Handler());

            self::assertSame(
                [301, $location],
                [$response->getStatusCode(), $response->getHeaderLine('Location')],
                $name,
            );
        }
    }

    public function testNoRedirectLeadsToAnotherHost(): void
    {
        mkdir($this->root() . '/evil.example');
        $this->file('root/evil.example/index.html', 'not here');
        $files = new StaticFiles($this->root());

        foreach ([
            '//evil.example',
            '///evil.example',
            '/\\evil.example',
            '/%2fevil.example',
            '/%5cevil.example',
            '//evil.example/',
            '/.//evil.example',
            '/%09/evil.example',
            "/\t/evil.example",
        ] as $path) {
            self::assertSame('', self::get($files, $path)->getHeaderLine('Location'), $path);
        }
        self::assertSame('./evil.example/', self::get($files, '/evil.example')->getHeaderLine('Location'));
        // A PSR-7 implementation may join slashes.
        self::assertSame(
            './evil.example/',
            $files->process(
                (new ServerRequest('GET', 'http://host//evil.example')),
                new Handler(),
            )->getHeaderLine('Location'),
        );
    }

    public function testWithoutAnIndexADirectoryReachesTheNextHandler(): void
    {
        $files = new StaticFiles($this->root(), index: null);

        self::assertSame(
            [self::PASSED_ON, self::PASSED_ON, self::PASSED_ON, 'docs'],
            array_map(
                static fn(string $path): string => self::content($files, $path),
                ['/', '/docs', '/docs/', '/docs/index.html'],
            ),
        );
    }

    public function testTheIndexCanHaveAnotherName(): void
    {
        self::assertSame('file', self::content(new StaticFiles($this->root(), index: 'file.txt'), '/'));
        self::assertSame(self::PASSED_ON, self::content(new StaticFiles($this->root(), index: 'index.php'), '/'));
        self::assertSame(self::PASSED_ON, self::content(new StaticFiles($this->root(), index: '../secret.txt'), '/'));
    }

    /** @return iterable<string, array{string, string}> */
    private static function prefixed(): iterable
    {
        yield 'a file' => ['/assets/file.txt', 'file'];
        yield 'the index' => ['/assets/', 'start'];
        yield 'a file outside of the prefix' => ['/file.txt', self::PASSED_ON];
        yield 'the root' => ['/', self::PASSED_ON];
        yield 'a path that begins alike' => ['/assetsfile.txt', self::PASSED_ON];
        yield 'a longer name' => ['/assets2/file.txt', self::PASSED_ON];
        yield 'the prefix twice' => ['/assets/assets/file.txt', self::PASSED_ON];
        yield 'the prefix behind something' => ['/x/assets/file.txt', self::PASSED_ON];
        yield 'the prefix encoded' => ['/%61ssets/file.txt', self::PASSED_ON];
        yield 'an empty name behind the prefix' => ['/assets//file.txt', self::PASSED_ON];
        yield 'out of the prefix' => ['/assets/../file.txt', self::PASSED_ON];
        yield 'what is well known only at the root' => ['/assets/.well-known/security.txt', self::PASSED_ON];
    }

    public function testAPrefixIsNoPartOfTheFilesPath(): void
    {
        $root = $this->root();
        foreach (self::prefixed() as $name => [$path, $content]) {
            self::assertSame($content, self::content(new StaticFiles($root, '/assets'), $path), $name);
            self::assertSame($content, self::content(new StaticFiles($root, '/assets/'), $path), $name);
        }
    }

    public function testTheRootMayBeNamedByALink(): void
    {
        $this->root();
        symlink('root', $this->path('current'));
        $files = new StaticFiles($this->path('current') . '/');
        unlink($this->path('current'));
        symlink('..', $this->path('current'));

        self::assertSame('file', self::content($files, '/file.txt'));
        self::assertSame(self::PASSED_ON, self::content($files, '/out.txt'));
    }

    public function testTheRootMayBeTheWholeDisk(): void
    {
        $path = (string) realpath($this->root());

        self::assertSame('file', self::content(new StaticFiles('/'), "{$path}/file.txt"));
        self::assertSame(self::SECRET, self::content(new StaticFiles('/'), "{$path}/out.txt"));
    }

    public function testAFileThatBecomesADirectoryIsSeen(): void
    {
        $files = new StaticFiles($this->root());
        self::assertSame('file', self::content($files, '/file.txt'));
        exec('cd ' . escapeshellarg($this->root()) . ' && rm file.txt && mkdir file.txt && mv index.html file.txt');

        self::assertSame(301, self::get($files, '/file.txt')->getStatusCode());
        self::assertSame('start', self::content($files, '/file.txt/'));
    }

    public function testADirectoryThatBecomesAFileIsSeen(): void
    {
        $root = $this->root();
        $files = new StaticFiles($root);
        self::assertSame(self::PASSED_ON, self::content($files, '/css'));
        exec('cd ' . escapeshellarg($root) . ' && rm -r css && cp file.txt css');

        self::assertSame('file', self::content($files, '/css'));
    }

    /** @return iterable<string, array{\Closure(string): StaticFiles, string}> */
    public static function mistakes(): iterable
    {
        yield 'a root that is not there' => [
            static fn(string $root) => new StaticFiles("{$root}/absent"),
            'it is not a directory',
        ];
        yield 'a root that is a file' => [
            static fn(string $root) => new StaticFiles("{$root}/file.txt"),
            'it is not a directory',
        ];
        yield 'a prefix without a slash' => [
            static fn(string $root) => new StaticFiles($root, 'assets'),
            'begin with a slash, unlike assets',
        ];
        yield 'an empty prefix' => [static fn(string $root) => new StaticFiles($root, ''), 'begin with a slash'];
        yield 'seconds before' => [static fn(string $root) => new StaticFiles($root, maxAge: -1), 'not -1'];
    }

    /** @param \Closure(string): StaticFiles $make */
    #[DataProvider('mistakes')]
    public function testInvalidOptionsThrow(\Closure $make, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);
        $make($this->root());
    }

    private function root(): string
    {
        $root = $this->path('root');
        if (is_dir($root)) {
            return $root;
        }
        foreach ([
            'root',
            'root/css',
            'root/css/.well-known',
            'root/docs',
            'root/docs/more',
            'root/.git',
            'root/.well-known',
            'root/.well-known/acme-challenge',
            'root/indexed-outside',
            'root/javascript:x',
            'root/@evil.example',
            'root-alike',
            'outside',
        ] as $directory) {
            mkdir($this->path($directory));
        }
        $files = [
            'file.txt' => 'file',
            'index.html' => 'start',
            'css/main.css' => 'styles',
            'docs/index.html' => 'docs',
            'docs/more/index.html' => 'more',
            'a b+c.txt' => 'blank',
            'ä€.txt' => 'euro',
            '100%.txt' => 'percent',
            '%66ile.txt' => 'encoded twice',
            'a..b' => 'dots',
            'dots...' => 'dots, too',
            '.well-known/security.txt' => 'contact',
            '.well-known/acme-challenge/token' => 'token',
            'javascript:x/index.html' => '',
            '@evil.example/index.html' => '',
            'index.php.html' => 'page', 'a.php.png' => 'picture',
        ];
        $secrets = [
            '../secret.txt',
            '../outside/secret.txt',
            '../outside/index.html',
            '../root-alike/secret.txt',
            '.env',
            'css/.htaccess',
            'css/.well-known/file.txt',
            '.git/config',
            '.well-known/.secret',
            '.well-known.txt',
            "\x07",
            "\x7f",
            "\xff",
            "\xed\xa0\x80",
            'index.php',
            'INDEX.PHP',
            'old.phtml',
            'app.phar',
            "file.txt\n",
            '%',
            '%zzfile.txt',
            'file.txt%2',
            'css\\main.css',
            '\\evil.example',
            'config.inc',
            'CONFIG.INC',
            'a.php.ORIG',
            'a.php.dist',
            ...self::COPIES,
        ];
        foreach ($files + array_fill_keys($secrets, self::SECRET) as $name => $content) {
            $this->file("root/{$name}", $content);
        }
        $links = [
            'link.txt' => 'file.txt',
            'linked' => 'css',
            'linked-docs' => "{$root}/docs",
            'around.txt' => '../root/file.txt',
            'out.txt' => '../secret.txt',
            'out2.txt' => 'out.txt',
            'outside' => '../outside',
            'indexed-outside/index.html' => '../../secret.txt',
            'up' => '..',
            'alike' => '../root-alike',
            'slash' => '/',
            'null' => '/dev/null',
            'dangling' => 'nowhere',
            'circle' => 'circle',
            'readme.txt' => 'index.php',
            'copied.txt' => 'a.php.bak',
        ];
        foreach ($links as $name => $target) {
            symlink($target, "{$root}/{$name}");
        }
        posix_mkfifo("{$root}/pipe", 0o600);

        return $root;
    }

    /** Creates a request whose path no PSR-7 implementation has normalized. */
    private static function request(string $path, string $method = 'GET', string $query = ''): ServerRequest
    {
        $uri = self::createStub(UriInterface::class);
        $uri->method('getPath')->willReturn($path);
        $uri->method('getQuery')->willReturn($query);

        return new ServerRequest($method, $uri);
    }

    private static function get(StaticFiles $files, string $path): ResponseInterface
    {
        return $files->process(self::request($path), new Handler());
    }

    private static function content(StaticFiles $files, string $path): string
    {
        return (string) self::get($files, $path)->getBody();
    }
}
